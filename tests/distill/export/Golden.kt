import java.util.Base64

// Runs the code of docs/mobile_text.md: what is read from the standard input, in lines of fields
// with tabs between, is what tests/distill/export/test_mobile_text.py writes.

fun text(field: String) = String(Base64.getDecoder().decode(field), Charsets.UTF_8)

fun texts(field: String) =
    if (field.isEmpty()) listOf<String>() else field.split(" ").map { text(it) }

fun numbers(field: String) = field.split(" ").map { it.toFloat() }.toFloatArray()

fun matrix(field: String) = field.split(";").map { numbers(it) }.toTypedArray()

fun shown(row: Row) =
    row.ids.joinToString(" ") + "," + row.segmentIds.joinToString(" ")

fun main() {
    val (lowercase, strips, splits) = readLine()!!.split("\t").map { it.toBoolean() }
    val tokens = texts(readLine()!!)
    val ids = tokens.withIndex().associate { (id, token) -> token to id }
    val pieces = WordPiece(ids, lowercase, strips, splits)
    val longest = readLine()!!.toInt()
    val rows = Rows(pieces, longest)
    var line = readLine()
    while (line != null) {
        val f = line.split("\t")
        val first = text(f[1])
        when (f[0]) {
            "single" -> println(shown(rows.single(first)))
            "pair" -> println(shown(rows.pair(first, text(f[2]))))
            "words", "characters" -> {
                val (prefixes, suffixes, whole) = f.subList(4, 7).map { texts(it).toSet() }
                val byWord = Words(prefixes, suffixes, whole).of(first).map { pieces.tokens(it) }
                val all = if (f[0] == "words") byWord.flatten() else pieces.tokens(first)
                val windows = rows.windows(all, f[2].toInt())
                val outputs = f.subList(7, f.size).map { matrix(it) }
                val labels = texts(f[3])
                val count = first.codePointCount(0, first.length)
                val tags = if (f[0] == "words") wordTags(byWord, windows, outputs, labels)
                else characterTags(count, windows, outputs, labels)
                println(windows.joinToString(";") { shown(it) } + "\t" + tags.joinToString(" "))
            }
            "answer" -> {
                val windows = rows.asked(first, text(f[2]), f[3].toInt(), f[4].toInt())
                val starts = f.subList(6, f.size).map { matrix(it)[0] }
                val ends = f.subList(6, f.size).map { matrix(it)[1] }
                val answer = bestAnswer(text(f[2]), windows, starts, ends, f[5].toBoolean())
                val encoded = Base64.getEncoder().encodeToString(answer.text.toByteArray())
                println(
                    windows.joinToString(";") { shown(it) } +
                        "\t${answer.start} ${answer.end} ${answer.score} $encoded"
                )
            }
        }
        line = readLine()
    }
}
