package tfnlp

/** The tag of a word or character, with its probability. */
data class Tag(val span: Span, val tag: String, val score: Float)

/** The probabilities of a window: of each of its ids, a row of all labels. */
class Probabilities(private val flat: FloatArray, private val labels: List<String>) {
    fun tag(place: Int, span: Span): Tag {
        val row = flat.copyOfRange(place * labels.size, (place + 1) * labels.size)
        val best = best(row)
        return Tag(span, labels[best], row[best])
    }
}

internal fun best(row: FloatArray) = row.indices.reduce { a, b -> if (row[b] > row[a]) b else a }

/**
 * Return the tag of each word: that of its first token, in two windows of the one where it has more words
 * around it. A word without a token is outside of entities.
 *
 * `words` are the tokens of each word; the windows are over `words.flatten()`.
 */
fun wordTags(
    spans: List<Span>, words: List<List<Token>>, windows: List<Row>, outputs: List<Probabilities>, outside: String
): List<Tag> {
    val numbers = words.withIndex().filter { it.value.isNotEmpty() }
        .associate { (number, tokens) -> tokens[0] to number }
    val tags = spans.map { Tag(it, outside, 1f) }.toMutableList()
    val margins = IntArray(words.size) { -1 }
    for ((window, probabilities) in windows.zip(outputs)) {
        val begun = window.tokens.withIndex().filter { it.value in numbers }
        for ((k, first) in begun.withIndex()) {
            val margin = minOf(k, begun.size - 1 - k)
            val word = numbers.getValue(first.value)
            if (margin > margins[word]) {
                margins[word] = margin
                tags[word] = probabilities.tag(window.first + first.index, spans[word])
            }
        }
    }
    return tags
}

private class Tagged(val margin: Int, var end: Int, val tag: Tag)

/**
 * Return the tag of each code point of a text.
 *
 * The first of a token has its tag, the others are inside of the same entity (B-x to I-x); so is what has no
 * token, such as white space, between two parts of an entity. Of several tokens of one code point the first
 * counts.
 */
fun characterTags(text: String, windows: List<Row>, outputs: List<Probabilities>): List<Tag> {
    val points = text.points()
    val byStart = bestByStart(points, windows, outputs)
    var open: Tagged? = null
    val tags = points.indices.map { place ->
        val begun = byStart[place]
        open = begun ?: open
        val covered = open?.takeIf { place < it.end }?.tag
        val tag = begun?.tag?.tag ?: covered?.tag?.let { if (it == "O") it else "I" + it.drop(1) }
        tag to (open?.tag?.score ?: 1f)
    }
    val known = tags.indices.filter { tags[it].first != null }
    val bridged = mutableMapOf<Int, String>()
    for ((i, j) in known.zipWithNext()) {
        val (before, after) = listOf(tags[i].first!!, tags[j].first!!)
        if (after.startsWith("I") && after.drop(1) == before.drop(1)) (i + 1 until j).associateWithTo(bridged) { after }
    }
    return tags.mapIndexed { place, (tag, score) -> Tag(Span(place, place + 1), tag ?: bridged[place] ?: "O", score) }
}

private fun bestByStart(points: IntArray, windows: List<Row>, outputs: List<Probabilities>): Map<Int, Tagged> {
    val byStart = mutableMapOf<Int, Tagged>()
    for ((window, probabilities) in windows.zip(outputs)) {
        var covered = 0
        var kept: Tagged? = null
        val starts = window.tokens.map { points.withoutSpaces(it).start }
        val places = starts.indices.filter { starts[it] < window.tokens[it].end }
        for ((k, place) in places.withIndex()) {
            val margin = minOf(k, places.size - 1 - k)
            val (start, end) = Span(starts[place], points.characterEnd(window.tokens[place].end))
            if (start < covered) {
                kept?.let { it.end = maxOf(it.end, end) }
            } else if (margin > (byStart[start]?.margin ?: -1)) {
                kept = Tagged(margin, end, probabilities.tag(window.first + place, Span(start, end)))
                byStart[start] = kept
            } else kept = null
            covered = maxOf(covered, end)
        }
    }
    return byStart
}
