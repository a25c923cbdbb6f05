package tfnlp

import java.io.File
import kotlin.math.abs
import kotlin.system.exitProcess
import org.json.JSONArray
import org.json.JSONObject

/** Print what differs in a folder of golden files; exit with 1 if anything does. */
fun main(arguments: Array<String>) {
    val differences = differences(File(arguments[0]))
    differences.forEach(::println)
    exitProcess(if (differences.isEmpty()) 0 else 1)
}

/**
 * Compare rows and answers with golden files: X.json, from `export_tflite --golden`, of each X.tflite.
 *
 * The model does not run: each row gets the outputs that the golden file has for it.
 */
fun differences(folder: File): List<String> {
    val files = checkNotNull(folder.listFiles()).filter { it.extension == "tflite" }.sorted()
    check(files.isNotEmpty()) { "There is no .tflite in $folder." }
    return files.flatMap { file ->
        val golden = JSONObject(File(folder, "${file.nameWithoutExtension}.json").readText())
        val model = ModelFile(file)
        golden.getJSONArray("inputs").objects().mapNotNull { input ->
            difference(model, input)?.let { "${file.name}, \"${input.getString("text")}\": $it" }
        }
    }
}

private fun difference(file: ModelFile, input: JSONObject): String? {
    val rows = input.getJSONArray("rows").objects().iterator()
    val model = TextModel(file) { row ->
        val expected = rows.next()
        same(expected.numbers("ids"), row.ids.toList())
        same(expected.numbers("segment_ids"), row.segmentIds.toList())
        val outputs = expected.getJSONObject("outputs")
        outputs.keys().asSequence().map { it.toString() }.associateWith { outputs.getJSONArray(it).floats() }
    }
    return try {
        compare(file.kind, model, input)
        if (rows.hasNext()) "a row is missing" else null
    } catch (e: Difference) {
        e.message
    }
}

private class Difference(message: String) : Exception(message)

private fun same(expected: Any?, actual: Any?) {
    if (expected != actual) throw Difference("$actual, not $expected")
}

private fun close(expected: Double, actual: Double) {
    if (abs(expected - actual) > 1e-6) throw Difference("$actual, not $expected")
}

private fun compare(kind: String, model: TextModel, input: JSONObject) {
    val text = input.getString("text")
    val second = if (input.has("second")) input.getString("second") else null
    if (kind == "embedder") return same(input.getJSONArray("answer").floats().toList(), model.embed(text).toList())
    val answer = input.getJSONObject("answer")
    when (kind) {
        "classifier", "multi-label classifier" -> {
            val found = model.classify(text, second)
            val isSingle = kind == "classifier"
            same(if (isSingle) listOf(answer.getString("label")) else answer.strings("labels"), found.labels)
            same(answer.getBoolean("truncated"), found.truncated)
        }
        "tagger" -> {
            val tags = model.tag(text)
            same(answer.strings("tags"), tags.map { it.tag })
            same(answer.numbers("spans"), tags.flatMap { listOf(it.span.start, it.span.end) })
            same(answer.getJSONArray("scores").floats().toList(), tags.map { it.score })
        }
        "answerer" -> {
            val best = model.answer(text, checkNotNull(second))
            same(answer.getString("text"), best.text)
            same(Span(answer.getInt("start"), answer.getInt("end")), best.span)
            close(answer.getDouble("score"), best.score.toDouble())
            close(answer.getDouble("probability"), best.probability)
        }
        else -> error("The library does not run files of the kind $kind.")
    }
}

private fun JSONArray.objects() = (0 until length()).map { getJSONObject(it) }

private fun JSONObject.strings(name: String) =
    getJSONArray(name).let { all -> (0 until all.length()).map { all.getString(it) } }

private fun JSONObject.numbers(name: String) = getJSONArray(name).floats().map { it.toInt() }

/** Return the numbers of nested arrays, one after the other. */
private fun JSONArray.floats(): FloatArray = (0 until length()).flatMap { place ->
    when (val entry = get(place)) {
        is JSONArray -> entry.floats().toList()
        else -> listOf((entry as Number).toFloat())
    }
}.toFloatArray()
