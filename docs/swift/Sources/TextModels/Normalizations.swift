/// A code point of a text that is being normalised, and the part of the whole text that it stands for.
struct Letter {
    let scalar: Unicode.Scalar
    let start: Int
    let end: Int
}

/// A code point of the text after it: of 1 it is put in; else it replaces one, and `-change` behind that one go.
struct Change {
    let scalar: Unicode.Scalar
    let change: Int
}

func changed(_ letters: [Letter], _ changes: [Change]) -> [Letter] {
    var next = 0
    return changes.map {
        let source = letters[$0.change > 0 ? max(next - 1, 0) : next]
        if $0.change <= 0 { next += 1 - $0.change }
        return Letter(scalar: $0.scalar, start: source.start, end: source.end)
    }
}

/// `Nmt`: drop control characters; make white space, and what has no width, spaces.
func nmt(_ letters: [Letter]) -> [Letter] {
    letters.filter { !nmtDropped.contains($0.scalar.value) }
        .map { nmtSpaces.contains($0.scalar.value) ? Letter(scalar: " ", start: $0.start, end: $0.end) : $0 }
}

private let nmtDropped = Set<UInt32>(Array(0x1...0x8) + [0xB] + Array(0xE...0x1F) + [0x7F, 0x8F, 0x9F])
private let nmtSpaces = Set<UInt32>(
    Array(0x200B...0x200F) + [0x9, 0xA, 0xC, 0xD, 0x1680, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD])

/// `Replace` of several spaces by one.
func withoutDoubleSpaces(_ letters: [Letter]) -> [Letter] {
    letters.indices.filter { letters[$0].scalar != " " || $0 + 1 == letters.count || letters[$0 + 1].scalar != " " }
        .map { letters[$0] }
}

/// `NFKC`, of the characters that the Unicode of `tokenizers` has.
func nfkc(_ letters: [Letter]) -> [Letter] { changed(letters, composed(ordered(decomposed(letters)))) }

private func decomposed(_ letters: [Letter]) -> [Change] {
    letters.flatMap { letter in
        Characters.shared.compatible(letter.scalar.value).enumerated()
            .map { Change(scalar: Unicode.Scalar($1)!, change: $0 == 0 ? 0 : 1) }
    }
}

/// Return changes with the marks behind each starter by their classes.
private func ordered(_ changes: [Change]) -> [Change] {
    func markClass(_ change: Change) -> UInt32 { Characters.shared.combiningClass(change.scalar.value) }
    var ordered: [Change] = []
    var marks: [Change] = []
    for change in changes {
        if markClass(change) == 0 {
            ordered += marks.sorted { markClass($0) < markClass($1) } + [change]
            marks = []
        } else {
            marks.append(change)
        }
    }
    return ordered + marks.sorted { markClass($0) < markClass($1) }
}

private func composed(_ changes: [Change]) -> [Change] {
    var composed: [Change] = []
    var starter: Int?
    var before: UInt32 = 0  // class of the last mark that stayed behind the starter
    for change in changes {
        let markClass = Characters.shared.combiningClass(change.scalar.value)
        if let starter, composed.count == starter + 1 || before < markClass,
            let whole = Characters.shared.composition(composed[starter].scalar.value, change.scalar.value)
        {
            let both = composed[starter].change + change.change - 1
            composed[starter] = Change(scalar: Unicode.Scalar(whole)!, change: both)
            continue
        }
        if markClass == 0 { starter = composed.count }
        before = markClass
        composed.append(change)
    }
    return composed
}
