/// Settings of tokenizer_config.json; `stripAccents` is `strip_accents`, or `do_lower_case` where that is null.
struct Reading {
    let lowercase: Bool
    let stripAccents: Bool
    let splitIdeographs: Bool
}

/// WordPiece of BERT, with the ids of Python's.
///
/// The pieces of a word are the longest that the vocabulary has, again and again. A word with a part that it
/// lacks is [UNK], as is one above 100 code points.
struct WordPiece: Tokenizer {
    private typealias Letter = (scalar: Unicode.Scalar, place: Int)

    let frame: Frame
    private let unknown: Int32
    private let vocabulary: [[Unicode.Scalar]: Int32]
    private let reading: Reading

    init(vocabulary tokens: [String], reading: Reading) throws {
        var vocabulary: [[Unicode.Scalar]: Int32] = [:]
        for (id, token) in tokens.enumerated() { vocabulary[Points(token)] = Int32(id) }
        func id(_ token: String) throws -> Int32 {
            guard let id = vocabulary[Points(token)] else {
                throw ModelError("There is no \(token) in vocab.txt; export the model again.")
            }
            return id
        }
        let end = try id("[SEP]")
        frame = Frame(before: try id("[CLS]"), between: [end], behind: end, second: 1)
        unknown = try id("[UNK]")
        self.vocabulary = vocabulary
        self.reading = reading
    }

    func tokens(_ text: String) -> [Token] { words(Points(text)).flatMap(pieces) }

    private func words(_ points: Points) -> [[Letter]] {
        let characters = Characters.shared
        var words: [[Letter]] = [[]]
        for (place, scalar) in points.enumerated() {
            if characters.isSpace(scalar.value) { words.append([]) }
            if characters.isSpace(scalar.value) || characters.isRemoved(scalar.value) { continue }
            let isWord = reading.splitIdeographs && characters.isIdeograph(scalar.value)
            for part in normalized(scalar.value) {
                let letter = (Unicode.Scalar(part)!, place)
                if isWord || characters.isPunctuation(part) {
                    words += [[letter], []]
                } else {
                    words[words.count - 1].append(letter)
                }
            }
        }
        return words.filter { !$0.isEmpty }
    }

    private func normalized(_ point: UInt32) -> [UInt32] {
        let parts = reading.stripAccents ? Characters.shared.withoutAccents(point) : [point]
        return reading.lowercase ? parts.flatMap(Characters.shared.lowercase) : parts
    }

    private func pieces(_ word: [Letter]) -> [Token] {
        func token(_ id: Int32, _ start: Int, _ end: Int) -> Token {
            Token(id: id, start: word[start].place, end: word[end - 1].place + 1)
        }
        let whole = [token(unknown, 0, word.count)]
        if word.count > 100 { return whole }
        var tokens: [Token] = []
        var start = 0
        while start < word.count {
            let mark: [Unicode.Scalar] = start == 0 ? [] : ["#", "#"]
            var end = word.count
            var id: Int32?
            while end > start {
                id = vocabulary[mark + word[start..<end].map(\.scalar)]
                if id != nil { break }
                end -= 1
            }
            guard let id else { return whole }
            tokens.append(token(id, start, end))
            start = end
        }
        return tokens
    }
}
