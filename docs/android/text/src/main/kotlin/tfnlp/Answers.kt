package tfnlp

import kotlin.math.exp

/** An answer in a text. `probability` is the softmax of `score` over all likely answers. */
data class Answer(val text: String, val span: Span, val score: Float, val probability: Double)

private const val CANDIDATES = 20 // of first and of last tokens in a window
private const val MOST_TOKENS = 30 // of an answer

/**
 * Return the likeliest answer: one window has all of it, and the sum of the logits of its first and last token
 * is the highest. With `nullAnswers` its text is empty where both at [CLS], the least of all windows, are higher.
 */
fun bestAnswer(
    text: String, windows: List<Row>, starts: List<FloatArray>, ends: List<FloatArray>, nullAnswers: Boolean
): Answer {
    val points = text.points()
    val scores = mutableMapOf<Span, Float>()
    for ((i, window) in windows.withIndex()) {
        val spans = window.tokens.map { points.withoutSpaces(it) }
        val places = spans.indices.filter { spans[it].start < spans[it].end }
        fun likeliest(logits: FloatArray) = places.sortedByDescending { logits[window.first + it] }.take(CANDIDATES)
        val lasts = likeliest(ends[i])
        for (a in likeliest(starts[i])) for (b in lasts) if (b in a until a + MOST_TOKENS) {
            val span = Span(spans[a].start, points.characterEnd(spans[b].end))
            val score = starts[i][window.first + a] + ends[i][window.first + b]
            scores.merge(span, score) { before, other -> maxOf(before, other) }
        }
    }
    val candidates = scores.map { it.toPair() }.toMutableList()
    if (nullAnswers) {
        val nulls = windows.indices.map { starts[it][0] + ends[it][0] }
        candidates += NO_ANSWER to nulls.reduce { a, b -> minOf(a, b) }
    }
    if (candidates.isEmpty()) return Answer("", NO_ANSWER, 0f, 1.0)
    val (span, score) = candidates.reduce { a, b -> if (b.second > a.second) b else a }
    val total = candidates.map { exp((it.second - score).toDouble()) }.sum()
    return Answer(points.text(span.start, span.end), span, score, 1 / total)
}

private val NO_ANSWER = Span(0, 0)
