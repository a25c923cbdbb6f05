package tfnlp.app

import android.content.Context
import java.io.File
import java.io.FileNotFoundException
import tfnlp.Classification
import tfnlp.ModelFile
import tfnlp.TextModel

/** The file in the app's assets: its answers as texts for the screen. */
class PhoneModel(private val context: Context) : AutoCloseable {
    private val path = File(context.cacheDir, ASSET).also { copyAsset(it) }
    private val file = ModelFile(path)
    private val liteRt = lazy { LiteRtModel(path, file) }
    private val mediaPipe = lazy { MediaPipeClassifier(context, ASSET) }
    private val texts = TextModel(file) { row -> liteRt.value.run(row) }

    val answersQuestions = file.kind == "answerer"
    val readsPairs = answersQuestions || file.kind == "embedder" || file.task.optBoolean("pairs")
    val runsInMediaPipe = file.kind.endsWith("classifier") && !readsPairs

    /** Return the answer for a text, or for a question on a second text. */
    fun answer(text: String, second: String?, byMediaPipe: Boolean): String = when {
        byMediaPipe -> listed(mediaPipe.value.classify(text))
        answersQuestions -> texts.answer(text, second.orEmpty()).text.ifEmpty { context.getString(R.string.no_answer) }
        file.kind == "tagger" -> tagged(text)
        file.kind == "embedder" -> "%.4f".format(similarity(text, second.orEmpty()))
        else -> described(texts.classify(text, second))
    }

    // The file's vectors have length 1.
    private fun similarity(text: String, second: String) =
        texts.embed(text).zip(texts.embed(second)) { a, b -> a * b }.sum()

    private fun described(answer: Classification): String {
        val labels = answer.labels.joinToString().ifEmpty { context.getString(R.string.no_label) }
        val note = if (answer.truncated) "\n" + context.getString(R.string.truncated) else ""
        return "$labels\n\n${listed(file.labels.zip(answer.probabilities.asList()).toMap())}$note"
    }

    private fun listed(probabilities: Map<String, Float>) =
        probabilities.entries.joinToString("\n") { (label, probability) -> "%.4f  %s".format(probability, label) }

    private fun tagged(text: String): String {
        fun place(point: Int) = text.offsetByCodePoints(0, point)
        return texts.tag(text).filter { it.tag != "O" }.joinToString("\n") {
            "${it.tag}  ${text.substring(place(it.span.start), place(it.span.end))}"
        }.ifEmpty { context.getString(R.string.no_label) }
    }

    // A zip archive is read from a file, not from an asset.
    private fun copyAsset(target: File) {
        val asset = try {
            context.assets.open(ASSET)
        } catch (e: FileNotFoundException) {
            throw IllegalArgumentException("Put a file of export_tflite into app/src/main/assets, as $ASSET.", e)
        }
        asset.use { source -> target.outputStream().use { source.copyTo(it) } }
    }

    override fun close() {
        for (runner in listOf(liteRt, mediaPipe)) if (runner.isInitialized()) runner.value.close()
    }

    private companion object {
        const val ASSET = "model.tflite"
    }
}
