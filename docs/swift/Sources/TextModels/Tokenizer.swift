/// A piece of a text: its id, and the code points that it stands for.
public final class Token {
    public let id: Int32
    public let start: Int
    public let end: Int

    init(id: Int32, start: Int, end: Int) { (self.id, self.start, self.end) = (id, start, end) }
}

/// The special ids before one text or two, between two and behind them; `second` is the segment of the second text.
struct Frame {
    let before: Int32
    let between: [Int32]
    let behind: Int32
    let second: Int32
}

/// What makes ids of a text, the same as in Python.
protocol Tokenizer {
    var frame: Frame { get }
    func tokens(_ text: String) -> [Token]
}
