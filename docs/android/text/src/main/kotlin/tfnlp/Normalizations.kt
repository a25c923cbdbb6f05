package tfnlp

/** A code point of a text that is being normalised, and the part of the whole text that it stands for. */
internal class Letter(val point: Int, val start: Int, val end: Int)

/** A code point of the text after it: of 1 it is put in; else it replaces one, and `-change` behind that one go. */
internal class Change(val point: Int, val change: Int)

internal fun List<Letter>.changed(changes: List<Change>): List<Letter> {
    var next = 0
    return changes.map {
        val source = this[if (it.change > 0) maxOf(next - 1, 0) else next]
        if (it.change <= 0) next += 1 - it.change
        Letter(it.point, source.start, source.end)
    }
}

/** `Nmt`: drop control characters; make white space, and what has no width, spaces. */
internal fun nmt(letters: List<Letter>): List<Letter> = letters.filterNot { it.point in NMT_DROPPED }
    .map { if (it.point in NMT_SPACES) Letter(SPACE, it.start, it.end) else it }

private val NMT_DROPPED = ((0x1..0x8) + 0xB + (0xE..0x1F) + 0x7F + 0x8F + 0x9F).toSet()
private val NMT_SPACES =
    ((0x200B..0x200F) + listOf(0x9, 0xA, 0xC, 0xD, 0x1680, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD)).toSet()

/** `Replace` of several spaces by one. */
internal fun withoutDoubleSpaces(letters: List<Letter>): List<Letter> =
    letters.filterIndexed { i, it -> it.point != SPACE || letters.getOrNull(i + 1)?.point != SPACE }

/** `NFKC`, of the characters that the Unicode of `tokenizers` has. */
internal fun nfkc(letters: List<Letter>): List<Letter> = letters.changed(composed(ordered(decomposed(letters))))

private fun decomposed(letters: List<Letter>): List<Change> = letters.flatMap { letter ->
    Characters.compatible(letter.point).mapIndexed { i, point -> Change(point, if (i == 0) 0 else 1) }
}

/** Return changes with the marks behind each starter by their classes. */
private fun ordered(changes: List<Change>): List<Change> {
    val ordered = mutableListOf<Change>()
    val marks = mutableListOf<Change>()
    fun flush() {
        ordered += marks.sortedBy { Characters.combiningClass(it.point) }
        marks.clear()
    }
    for (change in changes) {
        if (Characters.combiningClass(change.point) == 0) {
            flush()
            ordered += change
        } else marks += change
    }
    flush()
    return ordered
}

private fun composed(changes: List<Change>): List<Change> {
    val composed = mutableListOf<Change>()
    var starter = -1
    var before = 0 // class of the last mark that stayed behind the starter
    for (change in changes) {
        val markClass = Characters.combiningClass(change.point)
        val isBlocked = starter < 0 || composed.size > starter + 1 && before >= markClass
        val whole = if (isBlocked) null else Characters.composition(composed[starter].point, change.point)
        if (whole != null) {
            composed[starter] = Change(whole, composed[starter].change + change.change - 1)
            continue
        }
        if (markClass == 0) starter = composed.size
        before = markClass
        composed += change
    }
    return composed
}
