/// One run of the model. `tokens` are those of the second text of two; `first` is the place of their first one.
public struct Row {
    public let ids: [Int32]
    public let segmentIDs: [Int32]
    let tokens: [Token]
    let first: Int
    let truncated: Bool
}

/// Rows of at most `longest` ids, as Python frames, cuts and parts texts.
struct Rows {
    let tokenizer: Tokenizer
    let longest: Int
    private var longestPair: Int { longest - 2 - tokenizer.frame.between.count }

    private func framed(_ texts: [[Token]], truncated: Bool = false) -> Row {
        let frame = tokenizer.frame
        let ids = [frame.before] + Array(texts.map { $0.map(\.id) }.joined(separator: frame.between)) + [frame.behind]
        let size = 1 + texts[0].count + frame.between.count
        let segmentIDs = ids.indices.map { place -> Int32 in
            texts.count == 1 || place < size ? 0 : frame.second
        }
        let first = texts.count == 1 ? 1 : size
        return Row(ids: ids, segmentIDs: segmentIDs, tokens: texts.last!, first: first, truncated: truncated)
    }

    /// Return the row of a text, which loses its end if it is too long.
    func single(_ text: String) -> Row {
        let tokens = tokenizer.tokens(text)
        return framed([Array(tokens.prefix(longest - 2))], truncated: tokens.count > longest - 2)
    }

    /// Return the row of two texts; the longer one is cut until both are as long.
    func pair(_ first: String, _ second: String) -> Row {
        let (a, b) = (tokenizer.tokens(first), tokenizer.tokens(second))
        if a.count + b.count <= longestPair { return framed([a, b]) }
        let short = min(a.count, b.count, longestPair / 2)
        let ofFirst = a.count > b.count ? longestPair - short : short
        return framed([Array(a.prefix(ofFirst)), Array(b.prefix(longestPair - ofFirst))], truncated: true)
    }

    /// Return windows over the tokens of a long text, which share `stride` tokens.
    func windows(_ tokens: [Token], stride: Int) -> [Row] {
        parts(tokens, room: longest - 2, stride: stride).map { framed([$0]) }
    }

    /// Return windows over a long text, each behind the question, of which at most half a row is kept.
    func asked(_ question: String, _ text: String, stride: Int, longestQuestion: Int) -> [Row] {
        let limit = min(longestQuestion, longestPair / 2)
        let points = Points(question)
        let whole = tokenizer.tokens(question)
        var asked = whole
        var end = limit
        // What is left of a word may have more pieces than the word had.
        while asked.count > limit {
            let place = end > 0 ? points.characterEnd(whole[end - 1].end) : 0
            asked = tokenizer.tokens(points.text(0..<place))
            end -= 1
        }
        let room = longestPair - asked.count
        return parts(tokenizer.tokens(text), room: room, stride: min(stride, room / 2))
            .map { framed([asked, $0], truncated: whole.count > limit) }
    }

    private func parts(_ tokens: [Token], room: Int, stride: Int) -> [[Token]] {
        let step = room - stride
        let more = max(0, tokens.count - room)
        return (0...(more + step - 1) / step).map { Array(tokens.dropFirst($0 * step).prefix(room)) }
    }
}
