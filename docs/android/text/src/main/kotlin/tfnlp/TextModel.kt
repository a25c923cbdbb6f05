package tfnlp

import org.json.JSONArray

/** The labels that apply, one of a classifier of one label; `probabilities` are those of all, in the file's order. */
class Classification(val labels: List<String>, val probabilities: FloatArray, val truncated: Boolean)

/**
 * Answers of a file, as those of `distill.runtime`.
 *
 * `run` gives the outputs of a row by their names, flat; those of padding behind the row may follow.
 */
class TextModel(private val file: ModelFile, private val run: (Row) -> Map<String, FloatArray>) {
    private val task = file.task
    private val rows = Rows(file.tokenizer, file.longest)

    /** Classify a text, or two where the model reads pairs, by one label or several. */
    fun classify(text: String, second: String? = null): Classification {
        require(second != null || !task.optBoolean("pairs")) { "The model reads pairs; give the second text too." }
        val row = if (second == null) rows.single(text) else rows.pair(text, second)
        val probabilities = run(row).getValue("probability")
        val labels = if (file.kind == "classifier") listOf(likeliest(probabilities)) else applying(probabilities)
        return Classification(labels, probabilities, row.truncated)
    }

    private fun likeliest(probabilities: FloatArray): String {
        val best = best(probabilities)
        val isSure = probabilities[best] >= task.optDouble("threshold", 0.0)
        return if (isSure) file.labels[best] else task.optString("none_label", "none of these")
    }

    private fun applying(probabilities: FloatArray): List<String> {
        val thresholds = task.optJSONArray("thresholds")
        return file.labels.filterIndexed { i, _ -> probabilities[i] >= (thresholds?.getDouble(i) ?: 0.5) }
    }

    /** Return the tag of each word of a text or, where the file's unit is the character, of each code point. */
    fun tag(text: String): List<Tag> {
        val byCharacter = task.optString("unit") == "character"
        val points = text.points()
        val spans = if (byCharacter) listOf(Span(0, points.size)) else words().spans(text)
        val tokens = spans.map { file.tokenizer.tokens(points.text(it.start, it.end)) }
        val stride = minOf(task.optInt("stride", file.longest / 4), file.longest / 4)
        val windows = rows.windows(tokens.flatten(), stride)
        val outputs = windows.map { Probabilities(run(it).getValue("probability"), file.labels) }
        val outside = if ("O" in file.labels) "O" else file.labels[0]
        return if (byCharacter) characterTags(text, windows, outputs)
        else wordTags(spans, tokens, windows, outputs, outside)
    }

    private fun words(): Words {
        val words = task.optJSONObject("words")
        fun set(name: String) = words?.optJSONArray(name).strings().toSet()
        return Words(set("prefixes"), set("suffixes"), set("whole"))
    }

    private fun JSONArray?.strings() = if (this == null) emptyList() else (0 until length()).map { getString(it) }

    /** Return the answer to a question in a text. */
    fun answer(question: String, text: String): Answer {
        val longestQuestion = task.optInt("max_question_length", 64)
        val windows = rows.asked(question, text, task.optInt("stride", file.longest / 4), longestQuestion)
        val outputs = windows.map { run(it) }
        val starts = outputs.map { it.getValue("start_logits") }
        val ends = outputs.map { it.getValue("end_logits") }
        return bestAnswer(text, windows, starts, ends, task.optBoolean("null_answers"))
    }

    /** Return the vector of a text, of an embedder. */
    fun embed(text: String): FloatArray {
        val prompt = task.optJSONObject("prompts")?.optString(task.optString("default_prompt")) ?: ""
        return run(rows.single(prompt + text)).getValue("embedding")
    }
}
