package tfnlp

import java.text.Normalizer

/**
 * How the normalisers of `tokenizers` read code points, from characters.txt.
 *
 * The tables of Unicode of a phone change with its version; these are those of the tokenizer in Python.
 */
internal object Characters {
    private val lines: List<Pair<String, List<String>>> =
        checkNotNull(javaClass.getResourceAsStream("/tfnlp/characters.txt")).bufferedReader().readLines()
            .filterNot { it.startsWith("#") }
            .map { line -> line.split(" ").let { it.first() to it.drop(1) } }
    private val removed = ranges("removed")
    private val spaces = ranges("space")
    private val ideographs = ranges("ideograph")
    private val punctuation = ranges("punctuation")
    private val marks = ranges("mark")
    private val lower = mapping("lower")
    private val decomposed = mapping("decomposed")
    private val compatible = ranges("compatible")
    private val wholes = ranges("composed").flatten().associateBy { parts(it, Normalizer.Form.NFD) }
    private val compositions =
        wholes.map { (parts, whole) -> Pair(wholes[parts.dropLast(1)] ?: parts[0], parts.last()) to whole }.toMap()
    private val classes = mapping("class")
    private val extending = ranges("extend")
    private val prepended = ranges("prepend")
    private val controls = ranges("control")

    fun isRemoved(point: Int) = point within removed
    fun isSpace(point: Int) = point within spaces
    fun isIdeograph(point: Int) = point within ideographs
    fun isPunctuation(point: Int) = point within punctuation

    fun lowercase(point: Int): List<Int> = lower[point] ?: listOf(point)

    /** Return the code points of a canonical decomposition (NFD), without non-spacing marks. */
    fun withoutAccents(point: Int): List<Int> = when {
        point within marks -> emptyList()
        point in HANGUL -> jamo(point - HANGUL.first)
        else -> decomposed[point] ?: listOf(point)
    }

    /** Return the code points of a compatible decomposition (NFKD). */
    fun compatible(point: Int): List<Int> = when {
        point in HANGUL -> jamo(point - HANGUL.first)
        point within compatible -> parts(point, Normalizer.Form.NFKD)
        else -> listOf(point)
    }

    /** Return what NFC makes of two code points, if it is one. */
    fun composition(first: Int, second: Int): Int? = when {
        second < 0x300 -> null // as all of Latin-1
        first in 0x1100..0x1112 && second in 0x1161..0x1175 ->
            HANGUL.first + (first - 0x1100) * 588 + (second - 0x1161) * 28
        first in HANGUL && (first - HANGUL.first) % 28 == 0 && second in 0x11A8..0x11C2 -> first + second - 0x11A7
        else -> compositions[Pair(first, second)]
    }

    private fun parts(point: Int, form: Normalizer.Form) = Normalizer.normalize(point.asText(), form).points().toList()

    fun combiningClass(point: Int): Int = classes[point]?.single() ?: 0

    /** Tell whether two code points in a row are of one grapheme cluster (UAX 29); Hangul and emoji are left out. */
    fun isCluster(first: Int, second: Int): Boolean =
        if (first == 0xD) second == 0xA
        else !(first within controls || second within controls) && (second within extending || first within prepended)

    // The Unicode Standard, section 3.12: 19 first letters, 21 vowels, 27 last letters or none.
    private val HANGUL = 0xAC00..0xD7A3

    private fun jamo(syllable: Int): List<Int> {
        val letters = listOf(0x1100 + syllable / 588, 0x1161 + syllable / 28 % 21)
        return if (syllable % 28 == 0) letters else letters + (0x11A7 + syllable % 28)
    }

    private fun entries(kind: String) = lines.filter { it.first == kind }.flatMap { it.second }

    private fun range(text: String): IntRange {
        val ends = text.split("-").map { it.toInt(16) }
        return ends.first()..ends.last()
    }

    private fun ranges(kind: String) = entries(kind).map { range(it) }

    /** Return {code point: its reading} from entries such as C0-C5>41 and 1E9>41.300. */
    private fun mapping(kind: String): Map<Int, List<Int>> = entries(kind).flatMap { entry ->
        val (sources, reading) = entry.split(">")
        range(sources).map { point -> point to reading.split(".").map { it.toInt(16) } }
    }.toMap()

    private infix fun Int.within(ascending: List<IntRange>) = ascending.binarySearch {
        if (it.last < this) -1 else if (it.first > this) 1 else 0
    } >= 0
}
