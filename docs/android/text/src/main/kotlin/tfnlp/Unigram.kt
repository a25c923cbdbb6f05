package tfnlp

/** A token that is found in a text before anything else, with the white space before it where it strips that. */
internal class AddedToken(val points: IntArray, val id: Int, val stripsLeft: Boolean)

/** A piece of the vocabulary: its id is its place there. */
internal class Piece(val text: String, val score: Double)

/**
 * Unigram of XLM-R, with the ids of Python's.
 *
 * A word is spelled by the pieces with the highest sum of scores (Kudo 2018, 'Subword Regularization', equation 7);
 * what they cannot spell is unknown.
 */
internal class Unigram(
    private val pieces: List<Piece>, private val unknown: Int, added: List<AddedToken>,
    private val normalizers: List<(List<Letter>) -> List<Letter>>, private val splitsAtSpaces: Boolean
) : Tokenizer {
    private val ids: Map<String, Int> = pieces.withIndex().associate { (id, piece) -> piece.text to id }
    private val longest = pieces.fold(0) { most, piece -> maxOf(most, piece.text.length) }
    private val unknownScore = pieces.fold(0.0) { least, piece -> minOf(least, piece.score) } - 10
    private val added = added.sortedByDescending { it.points.size }

    override val frame = Frame(id("<s>"), listOf(id("</s>"), id("</s>")), id("</s>"), second = 0)

    private fun id(token: String): Int =
        requireNotNull(ids[token]) { "There is no $token in tokenizer.json; export the model again." }

    override fun tokens(text: String): List<Token> {
        val points = text.points().map { if (it in SURROGATES) REPLACEMENT else it }.toIntArray()
        val tokens = mutableListOf<Token>()
        var begin = 0 // of the text behind the last added token
        var place = 0
        while (place < points.size) {
            val found = added.firstOrNull { points.has(it.points, place) }
            if (found != null) {
                val spaces = (place downTo begin + 1).takeWhile { found.stripsLeft && isWhite(points[it - 1]) }.size
                val end = place + found.points.size
                tokens += plainTokens(points, begin, place - spaces) + Token(found.id, place - spaces, end)
                begin = end
            }
            place = if (found == null) place + 1 else begin
        }
        return tokens + plainTokens(points, begin, points.size)
    }

    private fun IntArray.has(part: IntArray, place: Int) =
        part.size <= size - place && part.indices.all { this[place + it] == part[it] }

    private fun plainTokens(points: IntArray, begin: Int, end: Int): List<Token> {
        val letters = (begin until end).map { Letter(points[it], it, it + 1) }
        return words(normalizers.fold(letters) { text, normalize -> normalize(text) }).flatMap { spelled(it) }
    }

    /** Return words, each of which begins with a mark in place of the space before it. */
    private fun words(letters: List<Letter>): List<List<Letter>> {
        val words = mutableListOf<MutableList<Letter>>()
        var isFirst = true
        for (letter in letters) {
            val isSplit = splitsAtSpaces && isWhite(letter.point)
            val isMark = !isSplit && (letter.point == SPACE || letter.point == MARK)
            if (isMark || isFirst && !isSplit) words += mutableListOf(Letter(MARK, letter.start, letter.end))
            if (!isMark && !isSplit) words.last() += letter
            isFirst = isSplit
        }
        return words
    }

    /** Return the pieces of a word; of two equal sums the one found first counts, from left to right. */
    private fun spelled(word: List<Letter>): List<Token> {
        val points = IntArray(word.size) { word[it].point }
        val sums = DoubleArray(word.size + 1)
        val starts = IntArray(word.size + 1) { -1 }
        val last = IntArray(word.size + 1)
        for (start in word.indices) {
            fun offer(end: Int, id: Int, score: Double) {
                if (starts[end] >= 0 && sums[start] + score <= sums[end]) return
                sums[end] = sums[start] + score
                starts[end] = start
                last[end] = id
            }
            for (end in start + 1..minOf(start + longest, word.size)) {
                val id = ids[points.text(start, end)]
                if (id != null) offer(end, id, pieces[id].score)
                else if (end == start + 1) offer(end, unknown, unknownScore)
            }
        }
        val tokens = mutableListOf<Token>()
        var end = word.size
        while (end > 0) {
            var start = starts[end]
            // Unknown pieces in a row are one.
            if (last[end] == unknown) while (start > 0 && last[start] == unknown) start = starts[start]
            val id = ids[points.text(start, end)] ?: unknown
            tokens += Token(id, word[start].start, word[end - 1].end)
            end = start
        }
        return tokens.reversed()
    }

    private companion object {
        const val MARK = 0x2581
        const val REPLACEMENT = 0xFFFD
        val SURROGATES = 0xD800..0xDFFF
    }
}
