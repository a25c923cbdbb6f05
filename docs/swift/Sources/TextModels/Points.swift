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

    private static func follows(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: return true
        default: return (0x1160...0x11FF).contains(scalar.value) || (0xD7B0...0xD7FB).contains(scalar.value)
        }
    }
}
