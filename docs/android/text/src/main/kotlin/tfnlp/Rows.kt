package tfnlp

/** One run of the model. `tokens` are those of the second text of two; `first` is the place of their first one. */
class Row(val ids: IntArray, val segmentIds: IntArray, val tokens: List<Token>, val first: Int, val truncated: Boolean)

/** Rows of at most `longest` ids, as Python frames, cuts and parts texts. */
class Rows(private val tokenizer: Tokenizer, private val longest: Int) {
    private val frame = tokenizer.frame
    private val longestPair = longest - 2 - frame.between.size

    private fun framed(vararg texts: List<Token>, truncated: Boolean = false): Row {
        val (a, b) = Pair(texts.first(), texts.drop(1))
        val ids = listOf(frame.before) + a.map { it.id } + b.flatMap { frame.between + it.map { it.id } } + frame.behind
        val size = 1 + a.size + frame.between.size
        val segments = IntArray(ids.size) { place -> if (b.isEmpty() || place < size) 0 else frame.second }
        return Row(ids.toIntArray(), segments, texts.last(), if (b.isEmpty()) 1 else size, truncated)
    }

    /** Return the row of a text, which loses its end if it is too long. */
    fun single(text: String): Row {
        val tokens = tokenizer.tokens(text)
        return framed(tokens.take(longest - 2), truncated = tokens.size > longest - 2)
    }

    /** Return the row of two texts; the longer one is cut until both are as long. */
    fun pair(first: String, second: String): Row {
        val (a, b) = listOf(tokenizer.tokens(first), tokenizer.tokens(second))
        if (a.size + b.size <= longestPair) return framed(a, b)
        val short = minOf(minOf(a.size, b.size), longestPair / 2)
        val ofFirst = if (a.size > b.size) longestPair - short else short
        return framed(a.take(ofFirst), b.take(longestPair - ofFirst), truncated = true)
    }

    /** Return windows over the tokens of a long text, which share `stride` tokens. */
    fun windows(tokens: List<Token>, stride: Int): List<Row> =
        parts(tokens, longest - 2, stride).map { framed(it) }

    /** Return windows over a long text, each behind the question, of which at most half a row is kept. */
    fun asked(question: String, text: String, stride: Int, longestQuestion: Int): List<Row> {
        val limit = minOf(longestQuestion, longestPair / 2)
        val points = question.points()
        val whole = tokenizer.tokens(question)
        var asked = whole
        var end = limit
        // What is left of a word may have more pieces than the word had.
        while (asked.size > limit) {
            val place = if (end > 0) points.characterEnd(whole[end - 1].end) else 0
            asked = tokenizer.tokens(points.text(0, place))
            end -= 1
        }
        val room = longestPair - asked.size
        return parts(tokenizer.tokens(text), room, minOf(stride, room / 2))
            .map { framed(asked, it, truncated = whole.size > limit) }
    }

    private fun parts(tokens: List<Token>, room: Int, stride: Int): List<List<Token>> {
        val step = room - stride
        val more = maxOf(0, tokens.size - room)
        return (0..(more + step - 1) / step).map { tokens.drop(it * step).take(room) }
    }
}
