/// The tag of a word or character, with its probability.
public struct Tag {
    public let span: Range<Int>  // code points
    public let tag: String
    public let score: Float
}

/// The probabilities of a window: of each of its ids, a row of all labels.
struct Probabilities {
    let flat: [Float]
    let labels: [String]

    func tag(_ place: Int, _ span: Range<Int>) -> Tag {
        let row = Array(flat[place * labels.count..<(place + 1) * labels.count])
        let best = best(row)
        return Tag(span: span, tag: labels[best], score: row[best])
    }
}

func best(_ row: [Float]) -> Int { row.indices.reduce(0) { row[$1] > row[$0] ? $1 : $0 } }

/// Return the tag of each word: that of its first token, in two windows of the one where it has more words
/// around it. A word without a token is outside of entities.
///
/// `words` are the tokens of each word of one text after the other; the windows are over all of them.
func wordTags(
    _ spans: [Range<Int>], _ words: [[Token]], _ windows: [Row], _ outputs: [Probabilities], outside: String
) -> [Tag] {
    var tags = spans.map { Tag(span: $0, tag: outside, score: 1) }
    let begins = words.enumerated().compactMap { number, tokens in tokens.first.map { (ObjectIdentifier($0), number) } }
    let numbers = Dictionary(uniqueKeysWithValues: begins)
    var margins = [Int](repeating: -1, count: words.count)
    for (window, probabilities) in zip(windows, outputs) {
        let begun = window.tokens.enumerated().compactMap { index, token in
            numbers[ObjectIdentifier(token)].map { (index, $0) }
        }
        for (k, (index, word)) in begun.enumerated() {
            let margin = min(k, begun.count - 1 - k)
            if margin > margins[word] {
                margins[word] = margin
                tags[word] = probabilities.tag(window.first + index, spans[word])
            }
        }
    }
    return tags
}

/// Return the tag of each code point of a text.
///
/// The first of a token has its tag, the others are inside of the same entity (B-x to I-x); so is what has no
/// token, such as white space, between two parts of an entity. Of several tokens of one code point the first
/// counts.
func characterTags(_ text: String, _ windows: [Row], _ outputs: [Probabilities]) -> [Tag] {
    let points = Points(text)
    let byStart = bestByStart(points, windows, outputs)
    var open: Tagged?
    var tags: [(tag: String?, score: Float)] = points.indices.map { place in
        let begun = byStart[place]
        open = begun ?? open
        let covered = open.flatMap { place < $0.end ? $0.tag.tag : nil }
        let inside = covered.map { $0 == "O" ? "O" : "I" + $0.dropFirst() }
        return (begun?.tag.tag ?? inside, open?.tag.score ?? 1)
    }
    let known = tags.indices.filter { tags[$0].tag != nil }
    for (i, j) in zip(known, known.dropFirst()) {
        let (before, after) = (tags[i].tag!, tags[j].tag!)
        if after.hasPrefix("I") && after.dropFirst() == before.dropFirst() {
            for place in i + 1..<j { tags[place].tag = after }
        }
    }
    return tags.enumerated().map { Tag(span: $0..<$0 + 1, tag: $1.tag ?? "O", score: $1.score) }
}

private struct Tagged {
    let margin: Int
    var end: Int
    let tag: Tag
}

private func bestByStart(_ points: Points, _ windows: [Row], _ outputs: [Probabilities]) -> [Int: Tagged] {
    var byStart: [Int: Tagged] = [:]
    for (window, probabilities) in zip(windows, outputs) {
        var covered = 0
        var kept: Int?
        let starts = window.tokens.map { points.withoutSpaces($0).lowerBound }
        let places = starts.indices.filter { starts[$0] < window.tokens[$0].end }
        for (k, place) in places.enumerated() {
            let margin = min(k, places.count - 1 - k)
            let (start, end) = (starts[place], points.characterEnd(window.tokens[place].end))
            if start < covered {
                if let kept { byStart[kept]!.end = max(byStart[kept]!.end, end) }
            } else if margin > byStart[start]?.margin ?? -1 {
                kept = start
                let tag = probabilities.tag(window.first + place, start..<end)
                byStart[start] = Tagged(margin: margin, end: end, tag: tag)
            } else {
                kept = nil
            }
            covered = max(covered, end)
        }
    }
    return byStart
}
