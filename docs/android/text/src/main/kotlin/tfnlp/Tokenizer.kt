package tfnlp

/** A piece of a text: its id, and the code points that it stands for. */
class Token(val id: Int, val start: Int, val end: Int)

/** The special ids before one text or two, between two and behind them; `second` is the segment of the second text. */
class Frame(val before: Int, val between: List<Int>, val behind: Int, val second: Int)

/** What makes ids of a text, the same as in Python. Places are code points of the text, not Java's `char`s. */
interface Tokenizer {
    val frame: Frame
    fun tokens(text: String): List<Token>
}
