/// The words of texts as a tagger's training data had them: ended by white space, parted from affixes.
struct Words {
    let prefixes, suffixes, whole: Set<Points>  // a Swift string equals another spelling of it

    private static let longestAffix = 8

    /// Return the code points of each word.
    func spans(_ text: String) -> [Range<Int>] {
        let points = Points(text)
        return points.indices.split { isSpace(points[$0]) }
            .flatMap { parts(points, $0.startIndex..<$0.endIndex) }
    }

    private func parts(_ points: Points, _ chunk: Range<Int>) -> [Range<Int>] {
        var (start, end) = (chunk.lowerBound, chunk.upperBound)
        var before: [Range<Int>] = []
        var after: [Range<Int>] = []
        while !whole.contains(Array(points[start..<end])) {
            let sizes = stride(from: min(end - start - 1, Self.longestAffix), to: 0, by: -1)
            if let size = sizes.first(where: { prefixes.contains(Array(points[start..<start + $0])) }) {
                before.append(start..<start + size)
                start += size
            } else if let size = sizes.first(where: { suffixes.contains(Array(points[end - $0..<end])) }) {
                after.append(end - size..<end)
                end -= size
            } else {
                break
            }
        }
        return before + [start..<end] + after.reversed()
    }
}
