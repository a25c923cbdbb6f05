package tfnlp

import java.io.File
import java.util.zip.ZipException
import java.util.zip.ZipFile
import org.json.JSONObject

/**
 * What `export_tflite` wrote behind the model of a .tflite file, as a zip archive.
 *
 * @throws IllegalArgumentException for a file of another program, of another kind, or with another tokenizer.
 */
class ModelFile(file: File) {
    private val texts: Map<String, String> = try {
        ZipFile(file).use { zip ->
            zip.entries().asSequence().associate { it.name to zip.getInputStream(it).bufferedReader().readText() }
        }
    } catch (e: ZipException) {
        throw IllegalArgumentException("${file.name} has no settings behind its model; write it by export_tflite.", e)
    }
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
