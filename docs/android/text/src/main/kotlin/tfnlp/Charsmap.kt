package tfnlp

/**
 * SentencePiece's table of normal texts (`Precompiled`): a trie over the bytes of UTF-8 as a double array, whose leaves
 * have the places of the texts, each ended by a zero.
 */
internal class Charsmap(base64: String) {
    private val content = decoded(base64)
    private val texts = 4 + number(0) // where they begin, behind the array

    /** Replace short characters with their marks, and else single code points, as `tokenizers` does. */
    fun normalized(letters: List<Letter>): List<Letter> {
        val changes = mutableListOf<Change>()
        fun replace(part: List<Letter>): Boolean {
            val points = normal(part.text().toByteArray())?.points() ?: return false
            points.mapIndexedTo(changes) { i, point -> Change(point, if (i < part.size) 0 else 1) }
            val removed = part.size - points.size
            if (removed > 0 && changes.isNotEmpty()) {
                val last = changes.removeAt(changes.lastIndex)
                changes += Change(last.point, last.change - removed)
            }
            return true
        }
        for (character in characters(letters)) {
            val isShort = character.size < LONG && character.text().toByteArray().size < LONG
            if (isShort && replace(character)) continue
            for (letter in character) if (!replace(listOf(letter))) changes += Change(letter.point, 0)
        }
        return letters.changed(changes)
    }

    /** Return the letters of each character with its marks; Hangul letters and emoji, which are long, come apart. */
    private fun characters(letters: List<Letter>): List<List<Letter>> {
        val characters = mutableListOf<MutableList<Letter>>()
        for ((i, letter) in letters.withIndex()) {
            if (i > 0 && Characters.isCluster(letters[i - 1].point, letter.point)) characters.last() += letter
            else characters += mutableListOf(letter)
        }
        return characters
    }

    /** Return the normal text of the shortest key that the bytes begin with. */
    private fun normal(bytes: ByteArray): String? {
        var place = offset(0)
        for (byte in bytes) {
            val label = byte.toInt() and 0xFF
            place = place xor label
            val unit = number(1 + place)
            if (label == 0 || unit and (1 shl 31 or 0xFF) != label) return null
            place = place xor offset(place)
            if (unit shr 8 and 1 == 1) {
                val start = texts + (number(1 + place) and Int.MAX_VALUE)
                val end = (start until content.size).firstOrNull { content[it] == 0.toByte() } ?: content.size
                return String(content, start, end - start)
            }
        }
        return null
    }

    private fun offset(place: Int): Int = number(1 + place).let { it ushr 10 shl (it and (1 shl 9) shr 6) }

    private fun number(place: Int): Int =
        (3 downTo 0).fold(0) { number, i -> number shl 8 or (content[4 * place + i].toInt() and 0xFF) }

    private companion object {
        const val LONG = 6 // bytes of characters whose marks are read alone
    }
}

private fun List<Letter>.text() = joinToString("") { it.point.asText() }

/** Return the bytes of base64; the class of Java is in Android 8 and later. */
private fun decoded(base64: String): ByteArray {
    val digits = base64.trimEnd('=').map { DIGITS.indexOf(it) }
    return ByteArray(digits.size * 6 / 8) { i ->
        val (place, bit) = Pair(i * 8 / 6, i * 8 % 6)
        (((digits[place] shl 6) or digits[place + 1]) shr (4 - bit)).toByte()
    }
}

private val DIGITS = (('A'..'Z') + ('a'..'z') + ('0'..'9') + '+' + '/').joinToString("")
