/// Code points of a text, the unit of all places in this package, as in Python.
typealias Points = [Unicode.Scalar]

extension Points {
    init(_ text: String) { self.init(text.unicodeScalars) }

    func text(_ span: Range<Int>) -> String {
        var scalars = String.UnicodeScalarView()
        scalars.append(contentsOf: self[span])
        return String(scalars)
    }

    /// Return the end of a span, moved behind the marks and Hangul letters that belong to its last code point.
    func characterEnd(_ end: Int) -> Int {
        end == 0 ? 0 : self[end...].firstIndex { !Self.follows($0) } ?? count
    }

    /// Return the part of a text that a token stands for, without white space at its edges.
    func withoutSpaces(_ token: Token) -> Range<Int> {
        let start = self[token.start..<token.end].firstIndex { !isSpace($0) } ?? token.end
        let last = self[start..<token.end].lastIndex { !isSpace($0) } ?? start - 1
        return start..<last + 1
    }

    private static func follows(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: return true
        default: return (0x1160...0x11FF).contains(scalar.value) || (0xD7B0...0xD7FB).contains(scalar.value)
        }
    }
}

/// Tell whether a code point is white space of Unicode; the tables of a phone change with its version.
func isWhite(_ scalar: Unicode.Scalar) -> Bool { white.contains(scalar.value) }

private let white = Set<UInt32>(
    Array(0x9...0xD) + Array(0x2000...0x200A) + [0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000])

/// Tell whether a code point is white space of Python.
func isSpace(_ scalar: Unicode.Scalar) -> Bool { isWhite(scalar) || (0x1C...0x1F).contains(scalar.value) }
