package tfnlp

/** The words of texts as a tagger's training data had them: ended by white space, parted from affixes. */
class Words(private val prefixes: Set<String>, private val suffixes: Set<String>, private val whole: Set<String>) {
    /** Return the first and the end code point of each word. */
    fun spans(text: String): List<Span> {
        val points = text.points()
        val inside = points.indices.filter { points[it] !in SPACES }
        val starts = inside.filter { it == 0 || points[it - 1] in SPACES }
        val ends = inside.map { it + 1 }.filter { it == points.size || points[it] in SPACES }
        return starts.zip(ends).flatMap { (start, end) -> parts(points, start, end) }
    }

    private fun parts(points: IntArray, first: Int, last: Int): List<Span> {
        var (start, end) = Span(first, last)
        val before = mutableListOf<Span>()
        val after = mutableListOf<Span>()
        while (points.text(start, end) !in whole) {
            val sizes = minOf(end - start - 1, LONGEST_AFFIX) downTo 1
            val prefix = sizes.firstOrNull { points.text(start, start + it) in prefixes }
            val suffix = sizes.firstOrNull { points.text(end - it, end) in suffixes }
            if (prefix != null) {
                before += Span(start, start + prefix)
                start += prefix
            } else if (suffix != null) {
                after += Span(end - suffix, end)
                end -= suffix
            } else break
        }
        return before + Span(start, end) + after.reversed()
    }

    private companion object {
        const val LONGEST_AFFIX = 8

        // The white space of Python, which is not quite that of Java.
        val SPACES = listOf(0x9..0xD, 0x1C..0x20, 0x2000..0x200A, 0x2028..0x2029).flatten().toSet() +
            setOf(0x85, 0xA0, 0x1680, 0x202F, 0x205F, 0x3000)
    }
}
