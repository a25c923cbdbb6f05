package tfnlp

/** Settings of tokenizer_config.json; `stripAccents` is `strip_accents`, or `do_lower_case` where that is null. */
class Reading(val lowercase: Boolean, val stripAccents: Boolean, val splitIdeographs: Boolean)

/**
 * WordPiece of BERT, with the ids of Python's.
 *
 * The pieces of a word are the longest that the vocabulary has, again and again. A word with a part that it
 * lacks is [UNK], as is one above 100 code points.
 */
class WordPiece(private val vocabulary: Map<String, Int>, private val reading: Reading) : Tokenizer {
    private class Letter(val text: String, val place: Int)

    override val frame = Frame(id("[CLS]"), listOf(id("[SEP]")), id("[SEP]"), second = 1)

    private fun id(token: String): Int =
        requireNotNull(vocabulary[token]) { "There is no $token in vocab.txt; export the model again." }

    override fun tokens(text: String): List<Token> = words(text.points()).flatMap { pieces(it) }

    private fun words(points: IntArray): List<List<Letter>> {
        val words = mutableListOf(mutableListOf<Letter>())
        for ((place, point) in points.withIndex()) {
            if (Characters.isSpace(point)) words += mutableListOf<Letter>()
            if (Characters.isSpace(point) || Characters.isRemoved(point)) continue
            val isWord = reading.splitIdeographs && Characters.isIdeograph(point)
            for (part in normalized(point)) {
                val letter = Letter(part.asText(), place)
                if (isWord || Characters.isPunctuation(part)) {
                    words += mutableListOf(letter)
                    words += mutableListOf<Letter>()
                } else words.last() += letter
            }
        }
        return words.filter { it.isNotEmpty() }
    }

    private fun normalized(point: Int): List<Int> {
        val parts = if (reading.stripAccents) Characters.withoutAccents(point) else listOf(point)
        return if (reading.lowercase) parts.flatMap { Characters.lowercase(it) } else parts
    }

    private fun pieces(word: List<Letter>): List<Token> {
        fun token(id: Int, from: Int, to: Int) = Token(id, word[from].place, word[to - 1].place + 1)
        fun spelled(from: Int, to: Int) =
            word.subList(from, to).joinToString("", if (from == 0) "" else "##") { it.text }
        val unknown = listOf(token(id("[UNK]"), 0, word.size))
        if (word.size > 100) return unknown
        val tokens = mutableListOf<Token>()
        var start = 0
        while (start < word.size) {
            val end = (word.size downTo start + 1).firstOrNull { spelled(start, it) in vocabulary }
                ?: return unknown
            tokens += token(id(spelled(start, end)), start, end)
            start = end
        }
        return tokens
    }
}
