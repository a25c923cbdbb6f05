import Foundation

/// How the normalisers of `tokenizers` read code points, from characters.txt.
///
/// The tables of Unicode of a phone change with its version; these are those of the tokenizer in Python.
struct Characters {
    static let shared = Characters()

    private let removed, spaces, ideographs, punctuation, marks: [ClosedRange<UInt32>]
    private let compatible, extending, prepended, controls: [ClosedRange<UInt32>]
    private let lower, decomposed, classes: [UInt32: [UInt32]]
    private let compositions: [[UInt32]: UInt32]

    private init() {
        let file = Bundle.module.url(forResource: "characters", withExtension: "txt")!
        let text = try! String(contentsOf: file, encoding: .utf8)
        var entries: [Substring: [Substring]] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let parts = line.split(separator: " ")
            entries[parts[0], default: []] += parts.dropFirst()
        }
        func ranges(_ kind: Substring) -> [ClosedRange<UInt32>] { entries[kind, default: []].map(Self.range) }
        func mapping(_ kind: Substring) -> [UInt32: [UInt32]] {
            Dictionary(uniqueKeysWithValues: entries[kind, default: []].flatMap(Self.readings))
        }
        removed = ranges("removed")
        spaces = ranges("space")
        ideographs = ranges("ideograph")
        punctuation = ranges("punctuation")
        marks = ranges("mark")
        compatible = ranges("compatible")
        let composed = ranges("composed").joined().map { point in
            (String(Unicode.Scalar(point)!).decomposedStringWithCanonicalMapping.unicodeScalars.map(\.value), point)
        }
        let wholes = Dictionary(uniqueKeysWithValues: composed)
        compositions = Dictionary(uniqueKeysWithValues: composed.map { parts, whole in
            ([wholes[Array(parts.dropLast())] ?? parts[0], parts.last!], whole)
        })
        extending = ranges("extend")
        prepended = ranges("prepend")
        controls = ranges("control")
        classes = mapping("class")
        lower = mapping("lower")
        decomposed = mapping("decomposed")
    }

    func isRemoved(_ point: UInt32) -> Bool { Self.contains(removed, point) }
    func isSpace(_ point: UInt32) -> Bool { Self.contains(spaces, point) }
    func isIdeograph(_ point: UInt32) -> Bool { Self.contains(ideographs, point) }
    func isPunctuation(_ point: UInt32) -> Bool { Self.contains(punctuation, point) }

    func lowercase(_ point: UInt32) -> [UInt32] { lower[point] ?? [point] }

    /// Return the code points of a canonical decomposition (NFD), without non-spacing marks.
    func withoutAccents(_ point: UInt32) -> [UInt32] {
        if Self.contains(marks, point) { return [] }
        return Self.hangul.contains(point) ? Self.jamo(point - Self.hangul.lowerBound) : decomposed[point] ?? [point]
    }

    /// Return the code points of a compatible decomposition (NFKD).
    func compatible(_ point: UInt32) -> [UInt32] {
        if Self.hangul.contains(point) { return Self.jamo(point - Self.hangul.lowerBound) }
        guard Self.contains(compatible, point) else { return [point] }
        return String(Unicode.Scalar(point)!).decomposedStringWithCompatibilityMapping.unicodeScalars.map(\.value)
    }

    /// Return what NFC makes of two code points, if it is one.
    func composition(_ first: UInt32, _ second: UInt32) -> UInt32? {
        if second < 0x300 { return nil }  // as all of Latin-1
        let base = Self.hangul.lowerBound
        if (0x1100...0x1112).contains(first) && (0x1161...0x1175).contains(second) {
            return base + (first - 0x1100) * 588 + (second - 0x1161) * 28
        }
        if Self.hangul.contains(first) && (first - base) % 28 == 0 && (0x11A8...0x11C2).contains(second) {
            return first + second - 0x11A7
        }
        return compositions[[first, second]]
    }

    func combiningClass(_ point: UInt32) -> UInt32 { classes[point]?[0] ?? 0 }

    /// Tell whether two code points in a row are of one grapheme cluster (UAX 29); Hangul and emoji are left out.
    func isCluster(_ first: UInt32, _ second: UInt32) -> Bool {
        if first == 0xD { return second == 0xA }
        if Self.contains(controls, first) || Self.contains(controls, second) { return false }
        return Self.contains(extending, second) || Self.contains(prepended, first)
    }

    // The Unicode Standard, section 3.12: 19 first letters, 21 vowels, 27 last letters or none.
    private static let hangul: ClosedRange<UInt32> = 0xAC00...0xD7A3

    private static func jamo(_ syllable: UInt32) -> [UInt32] {
        let letters = [0x1100 + syllable / 588, 0x1161 + syllable / 28 % 21]
        return syllable % 28 == 0 ? letters : letters + [0x11A7 + syllable % 28]
    }

    private static func range(_ text: Substring) -> ClosedRange<UInt32> {
        let ends = text.split(separator: "-").map { UInt32($0, radix: 16)! }
        return ends.first!...ends.last!
    }

    /// Return (code point, its reading) pairs of entries such as C0-C5>41 and 1E9>41.300.
    private static func readings(_ entry: Substring) -> [(UInt32, [UInt32])] {
        let parts = entry.split(separator: ">")
        let reading = parts[1].split(separator: ".").map { UInt32($0, radix: 16)! }
        return range(parts[0]).map { ($0, reading) }
    }

    private static func contains(_ ascending: [ClosedRange<UInt32>], _ point: UInt32) -> Bool {
        var (low, high) = (0, ascending.count)
        while low < high {
            let middle = (low + high) / 2
            if ascending[middle].upperBound < point { low = middle + 1 } else { high = middle }
        }
        return low < ascending.count && ascending[low].contains(point)
    }
}
