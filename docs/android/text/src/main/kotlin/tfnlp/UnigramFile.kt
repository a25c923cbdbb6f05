package tfnlp

import org.json.JSONArray
import org.json.JSONObject

private val TEMPLATE = listOf("<s>", "A", "</s>", "</s>", "B", "</s>")

/**
 * Read a tokenizer.json of XLM-R.
 *
 * @throws IllegalArgumentException for another one; it names the part that is not read.
 */
internal fun unigram(content: JSONObject): Unigram {
    val model = content.getJSONObject("model")
    if (model.optString("type") != "Unigram") unread("the model ${model.optString("type")}")
    if (model.optBoolean("byte_fallback")) unread("byte_fallback")
    val pieces = model.getJSONArray("vocab").map { getJSONArray(it).run { Piece(getString(0), getDouble(1)) } }
    val added = content.getJSONArray("added_tokens").map { addedToken(getJSONObject(it)) }
    val normalizers = steps(content, "normalizer", "normalizers").map { normalizer(it) }
    val splitsAtSpaces = splitsAtSpaces(steps(content, "pre_tokenizer", "pretokenizers"))
    if (template(content) != TEMPLATE) unread("a post_processor other than that of XLM-R")
    return Unigram(pieces, model.getInt("unk_id"), added, normalizers, splitsAtSpaces)
}

private fun unread(part: String): Nothing =
    throw IllegalArgumentException("tokenizer.json has $part, which this library does not read.")

private fun <T> JSONArray.map(read: JSONArray.(Int) -> T) = (0 until length()).map { read(it) }

private fun addedToken(token: JSONObject): AddedToken {
    val text = token.getString("content")
    for (flag in listOf("normalized", "single_word", "rstrip"))
        if (token.getBoolean(flag)) unread("the added token $text with $flag")
    return AddedToken(text.points(), token.getInt("id"), token.getBoolean("lstrip"))
}

private fun steps(content: JSONObject, section: String, list: String): List<JSONObject> {
    val step = content.optJSONObject(section) ?: unread("no $section")
    return if (step.getString("type") == "Sequence") step.getJSONArray(list).map { getJSONObject(it) } else listOf(step)
}

private fun normalizer(step: JSONObject): (List<Letter>) -> List<Letter> = when (step.getString("type")) {
    "Precompiled" -> Charsmap(step.getString("precompiled_charsmap"))::normalized
    "Nmt" -> ::nmt
    "NFKC" -> ::nfkc
    "Replace" -> {
        val pattern = step.getJSONObject("pattern")
        if (pattern.optString("Regex") != " {2,}" || step.getString("content") != " ") unread("a Replace of $pattern")
        ::withoutDoubleSpaces
    }
    else -> unread("the normalizer ${step.getString("type")}")
}

private fun splitsAtSpaces(steps: List<JSONObject>): Boolean {
    val names = steps.map { it.getString("type") }
    val other = names.firstOrNull { it != "WhitespaceSplit" && it != "Metaspace" }
    if (other != null) unread("the pre_tokenizer $other")
    val spaces = steps.last()
    val isUsual = spaces.optString("prepend_scheme") == "always" && spaces.optBoolean("split")
    if (!isUsual || names.size > 2 || names.last() != "Metaspace") unread("a Metaspace other than that of XLM-R")
    return names.size == 2
}

private fun template(content: JSONObject): List<String> {
    val parts = content.optJSONObject("post_processor")?.optJSONArray("pair") ?: unread("no template of pairs")
    return parts.map { place ->
        getJSONObject(place).run { optJSONObject("SpecialToken") ?: getJSONObject("Sequence") }.getString("id")
    }
}
