package tfnlp

/** The words of texts as a tagger's training data had them: ended by white space, parted from affixes. */
class Words(private val prefixes: Set<String>, private val suffixes: Set<String>, private val whole: Set<String>) {
    /** Return the first and the end code point of each word. */
    fun spans(text: String): List<Span> {
        val points = text.points()
        val inside = points.indices.filter { !isSpace(points[it]) }
        val starts = inside.filter { it == 0 || isSpace(points[it - 1]) }
        val ends = inside.map { it + 1 }.filter { it == points.size || isSpace(points[it]) }
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
    }
}
