/// The words of texts as a tagger's training data had them: ended by white space, parted from affixes.
struct Words {
    let prefixes, suffixes, whole: Set<Points>  // a Swift string equals another spelling of it

    private static let longestAffix = 8
    // The white space of Python, which is not quite that of Unicode.
    private static let spaces = Set<UInt32>(
        Array(0x9...0xD) + Array(0x1C...0x20) + Array(0x2000...0x200A)
            + [0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000])

    /// Return the code points of each word.
    func spans(_ text: String) -> [Range<Int>] {
        let points = Points(text)
        return points.indices.split { Self.spaces.contains(points[$0].value) }
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
