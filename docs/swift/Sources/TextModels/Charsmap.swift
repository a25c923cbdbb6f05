import Foundation

/// SentencePiece's table of normal texts (`Precompiled`): a trie over the bytes of UTF-8 as a double array, whose
/// leaves have the places of the texts, each ended by a zero.
struct Charsmap {
    private static let long = 6  // bytes of characters whose marks are read alone

    private let array: [UInt32]
    private let texts: [UInt8]

    init?(base64: String) {
        guard let content = Data(base64Encoded: base64).map({ [UInt8]($0) }) else { return nil }
        func number(_ place: Int) -> UInt32 { content[place..<place + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) } }
        let end = 4 + Int(number(0))
        array = stride(from: 4, to: end, by: 4).map(number)
        texts = Array(content[end...])
    }

    /// Replace short characters with their marks, and else single code points, as `tokenizers` does.
    func normalized(_ letters: [Letter]) -> [Letter] {
        var changes: [Change] = []
        func replace(_ part: ArraySlice<Letter>) -> Bool {
            guard let text = normal(bytes(part)) else { return false }
            let points = Points(text)
            changes += points.enumerated().map { Change(scalar: $1, change: $0 < part.count ? 0 : 1) }
            if points.count < part.count, let last = changes.popLast() {
                changes.append(Change(scalar: last.scalar, change: last.change + points.count - part.count))
            }
            return true
        }
        for character in characters(letters) {
            let isShort = character.count < Self.long && bytes(character).count < Self.long
            if isShort && replace(character) { continue }
            for place in character.indices where !replace(character[place...place]) {
                changes.append(Change(scalar: character[place].scalar, change: 0))
            }
        }
        return changed(letters, changes)
    }

    private func bytes(_ part: ArraySlice<Letter>) -> [UInt8] { part.flatMap { Array(UTF8.encode($0.scalar)!) } }

    /// Return the letters of each character with its marks; Hangul letters and emoji, which are long, come apart.
    private func characters(_ letters: [Letter]) -> [ArraySlice<Letter>] {
        let begins = letters.indices.filter {
            $0 == 0 || !Characters.shared.isCluster(letters[$0 - 1].scalar.value, letters[$0].scalar.value)
        }
        return zip(begins, begins.dropFirst() + [letters.count]).map { letters[$0..<$1] }
    }

    /// Return the normal text of the shortest key that the bytes begin with.
    private func normal(_ bytes: [UInt8]) -> String? {
        var place = offset(array[0])
        for byte in bytes {
            place ^= Int(byte)
            let unit = array[place]
            if byte == 0 || unit & (1 << 31 | 0xFF) != UInt32(byte) { return nil }
            place ^= offset(unit)
            if unit >> 8 & 1 == 1 {
                return String(decoding: texts[Int(array[place] & ~(1 << 31))...].prefix { $0 != 0 }, as: UTF8.self)
            }
        }
        return nil
    }

    private func offset(_ unit: UInt32) -> Int { Int(unit >> 10) << Int(unit >> 6 & 8) }
}
