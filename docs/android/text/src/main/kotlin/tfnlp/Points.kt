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
