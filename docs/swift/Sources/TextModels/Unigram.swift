/// A token that is found in a text before anything else, with the white space before it where it strips that.
struct AddedToken {
    let points: Points
    let id: Int32
    let stripsLeft: Bool
}

/// Unigram of XLM-R, with the ids of Python's.
///
/// A word is spelled by the pieces with the highest sum of scores (Kudo 2018, 'Subword Regularization', equation 7);
/// what they cannot spell is unknown.
struct Unigram: Tokenizer {
    private static let mark: Unicode.Scalar = "\u{2581}"

    let frame: Frame
    private let ids: [ArraySlice<Unicode.Scalar>: Int32]
    private let scores: [Double]
    private let longest: Int
    private let unknown: Int32
    private let unknownScore: Double
    private let added: [AddedToken]
    private let normalizers: [([Letter]) -> [Letter]]
    private let splitsAtSpaces: Bool

    /// - Parameter pieces: of the vocabulary, with their scores; the id of each is its place.
    init(
        pieces: [(points: Points, score: Double)], unknown: Int32, added: [AddedToken],
        normalizers: [([Letter]) -> [Letter]], splitsAtSpaces: Bool
    ) throws {
        var ids: [ArraySlice<Unicode.Scalar>: Int32] = [:]
        for (id, piece) in pieces.enumerated() { ids[piece.points[...]] = Int32(id) }
        func id(_ token: String) throws -> Int32 {
            guard let id = ids[Points(token)[...]] else {
                throw ModelError("There is no \(token) in tokenizer.json; export the model again.")
            }
            return id
        }
        let end = try id("</s>")
        frame = Frame(before: try id("<s>"), between: [end, end], behind: end, second: 0)
        (self.ids, scores, self.unknown) = (ids, pieces.map(\.score), unknown)
        unknownScore = pieces.reduce(0) { min($0, $1.score) } - 10
        longest = pieces.map(\.points.count).max() ?? 0
        self.added = added.sorted { $0.points.count > $1.points.count }
        (self.normalizers, self.splitsAtSpaces) = (normalizers, splitsAtSpaces)
    }

    func tokens(_ text: String) -> [Token] {
        let points = Points(text)
        var tokens: [Token] = []
        var begin = 0  // of the text behind the last added token
        var place = 0
        while place < points.count {
            guard let found = added.first(where: { points[place...].starts(with: $0.points) }) else {
                place += 1
                continue
            }
            let spaces = found.stripsLeft ? points[begin..<place].reversed().prefix { isWhite($0) }.count : 0
            tokens += plainTokens(points, begin..<place - spaces)
            begin = place + found.points.count
            tokens.append(Token(id: found.id, start: place - spaces, end: begin))
            place = begin
        }
        return tokens + plainTokens(points, begin..<points.count)
    }

    private func plainTokens(_ points: Points, _ span: Range<Int>) -> [Token] {
        let letters = span.map { Letter(scalar: points[$0], start: $0, end: $0 + 1) }
        return words(normalizers.reduce(letters) { text, normalize in normalize(text) }).flatMap(spelled)
    }

    /// Return words, each of which begins with a mark in place of the space before it.
    private func words(_ letters: [Letter]) -> [[Letter]] {
        var words: [[Letter]] = []
        var isFirst = true
        for letter in letters {
            let isSplit = splitsAtSpaces && isWhite(letter.scalar)
            let isMark = !isSplit && (letter.scalar == " " || letter.scalar == Self.mark)
            if isMark || isFirst && !isSplit {
                words.append([Letter(scalar: Self.mark, start: letter.start, end: letter.end)])
            }
            if !isMark && !isSplit { words[words.count - 1].append(letter) }
            isFirst = isSplit
        }
        return words
    }

    /// Return the pieces of a word; of two equal sums the one found first counts, from left to right.
    private func spelled(_ word: [Letter]) -> [Token] {
        let points = word.map(\.scalar)
        // Of each place: the highest sum of pieces before it, and the last one's start and id.
        var best = [(sum: Double, start: Int, id: Int32)](repeating: (0, -1, 0), count: word.count + 1)
        for start in word.indices {
            func offer(_ end: Int, _ id: Int32, _ score: Double) {
                let sum = best[start].sum + score
                if best[end].start < 0 || sum > best[end].sum { best[end] = (sum, start, id) }
            }
            for end in start + 1...min(start + max(longest, 1), word.count) {
                if let id = ids[points[start..<end]] {
                    offer(end, id, scores[Int(id)])
                } else if end == start + 1 {
                    offer(end, unknown, unknownScore)
                }
            }
        }
        var tokens: [Token] = []
        var end = word.count
        while end > 0 {
            var start = best[end].start
            if best[end].id == unknown {  // unknown pieces in a row are one
                while start > 0 && best[start].id == unknown { start = best[start].start }
            }
            let id = ids[points[start..<end]] ?? unknown
            tokens.append(Token(id: id, start: word[start].start, end: word[end - 1].end))
            end = start
        }
        return tokens.reversed()
    }
}
