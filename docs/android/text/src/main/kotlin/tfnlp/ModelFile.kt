package tfnlp

import java.io.File
import java.io.RandomAccessFile
import org.json.JSONObject

/**
 * What `export_tflite` wrote behind the model of a .tflite file, as a zip archive.
 *
 * @throws IllegalArgumentException for a file of another program, of another kind, or with another tokenizer.
 */
class ModelFile(file: File) {
    private val texts: Map<String, String> = RandomAccessFile(file, "r").use { storedTexts(it, file.name) }
    private val settings = JSONObject(text("tokenizer_config.json", file))

    val kind: String = settings.getString("kind")
    val outputs: List<String> = when (kind) {
        "classifier", "multi-label classifier", "tagger" -> listOf("probability")
        "answerer" -> listOf("start_logits", "end_logits")
        "embedder" -> listOf("embedding")
        else -> throw IllegalArgumentException("${file.name} is of the kind $kind, which this library does not run.")
    }
    val labels: List<String> = texts["labels.txt"]?.split("\n") ?: emptyList()
    val longest: Int = settings.getInt("model_max_length")

    /** How the model was trained to read texts. */
    val task: JSONObject = settings.optJSONObject("task") ?: JSONObject()

    val tokenizer: Tokenizer = texts["tokenizer.json"]?.let { unigram(JSONObject(it)) } ?: WordPiece(
        text("vocab.txt", file).split("\n").withIndex().associate { (id, token) -> token to id },
        settings.getBoolean("do_lower_case").let { lowercase ->
            val strips = if (settings.isNull("strip_accents")) lowercase else settings.getBoolean("strip_accents")
            Reading(lowercase, strips, settings.getBoolean("tokenize_chinese_chars"))
        }
    )

    private fun text(name: String, file: File) = requireNotNull(texts[name]) {
        "${file.name} has no $name; write it by export_tflite."
    }
}

/** Return the texts of an archive behind a model, none of which is compressed; Android's `ZipFile` allows no model. */
private fun storedTexts(file: RandomAccessFile, name: String): Map<String, String> {
    fun bytes(place: Int, size: Int) = ByteArray(size).also {
        file.seek(place.toLong())
        file.readFully(it)
    }
    fun number(place: Int, size: Int) =
        bytes(place, size).foldRight(0) { byte, number -> number shl 8 or (byte.toInt() and 0xFF) }
    val end = file.length().toInt() - 22
    require(end >= 0 && number(end, 4) == 0x06054B50) {
        "$name has no settings behind its model; write it by export_tflite."
    }
    val texts = mutableMapOf<String, String>()
    var entry = number(end + 16, 4)
    repeat(number(end + 10, 2)) {
        val (nameSize, extraSize, commentSize) = listOf(28, 30, 32).map { number(entry + it, 2) }
        val header = number(entry + 42, 4)
        val start = header + 30 + number(header + 26, 2) + number(header + 28, 2)
        texts[String(bytes(entry + 46, nameSize))] = String(bytes(start, number(entry + 20, 4)))
        entry += 46 + nameSize + extraSize + commentSize
    }
    return texts
}
