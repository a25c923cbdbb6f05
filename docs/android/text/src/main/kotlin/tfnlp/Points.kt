package tfnlp

/** The first and the end place of a part of a text, in code points, as all places in this package. */
data class Span(val start: Int, val end: Int)

internal fun String.points(): IntArray = codePoints().toArray()

internal fun Int.asText() = String(Character.toChars(this))

internal fun IntArray.text(start: Int, end: Int) = String(this, start, end - start)

private val MARKS = setOf(Character.NON_SPACING_MARK, Character.COMBINING_SPACING_MARK, Character.ENCLOSING_MARK)

/** Return the end of a span, moved behind the marks and Hangul letters that belong to its last code point. */
internal fun IntArray.characterEnd(end: Int): Int {
    fun follows(point: Int) =
        Character.getType(point).toByte() in MARKS || point in 0x1160..0x11FF || point in 0xD7B0..0xD7FB
    return if (end == 0) 0 else (end until size).firstOrNull { !follows(this[it]) } ?: size
}

internal const val SPACE = 0x20

/** Tell whether a code point is white space of Unicode. */
internal fun isWhite(point: Int) = point in WHITE

// The tables of a phone change with its version.
private val WHITE = listOf(0x9..0xD, 0x2000..0x200A, 0x2028..0x2029).flatten().toSet() +
    setOf(SPACE, 0x85, 0xA0, 0x1680, 0x202F, 0x205F, 0x3000)

/** Tell whether a code point is white space of Python. */
internal fun isSpace(point: Int) = isWhite(point) || point in 0x1C..0x1F

/** Return the part of a text that a token stands for, without white space at its edges. */
internal fun IntArray.withoutSpaces(token: Token): Span {
    val start = (token.start until token.end).firstOrNull { !isSpace(this[it]) } ?: token.end
    val last = (token.end - 1 downTo start).firstOrNull { !isSpace(this[it]) } ?: start - 1
    return Span(start, last + 1)
}
