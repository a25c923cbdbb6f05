/// The labels that apply, one of a classifier of one label; `probabilities` are those of all, in the file's order.
public struct Classification {
    public let labels: [String]
    public let probabilities: [Float]
    public let truncated: Bool
}

/// Answers of a file, as those of `distill.runtime`.
///
/// `run` gives the outputs of a row by their names, flat; those of padding behind the row may follow.
public struct TextModel {
    private let file: ModelFile
    private let run: (Row) throws -> [String: [Float]]
    private let rows: Rows

    public init(_ file: ModelFile, run: @escaping (Row) throws -> [String: [Float]]) {
        (self.file, self.run) = (file, run)
        rows = Rows(tokenizer: file.tokenizer, longest: file.longest)
    }

    private func setting<T>(_ name: String, or value: T) -> T { file.task[name] as? T ?? value }

    private func output(_ name: String, of row: Row) throws -> [Float] {
        guard let numbers = try run(row)[name] else {
            throw ModelError("A file of the kind \(file.kind) has no output \(name).")
        }
        return numbers
    }

    /// Classify a text, or two where the model reads pairs, by one label or several.
    public func classify(_ text: String, _ second: String? = nil) throws -> Classification {
        if second == nil && setting("pairs", or: false) {
            throw ModelError("The model reads pairs; give the second text too.")
        }
        let row = second.map { rows.pair(text, $0) } ?? rows.single(text)
        let probabilities = try output("probability", of: row)
        let labels = file.kind == "classifier" ? [likeliest(probabilities)] : applying(probabilities)
        return Classification(labels: labels, probabilities: probabilities, truncated: row.truncated)
    }

    private func likeliest(_ probabilities: [Float]) -> String {
        let best = best(probabilities)
        let isSure = Double(probabilities[best]) >= setting("threshold", or: 0.0)
        return isSure ? file.labels[best] : setting("none_label", or: "none of these")
    }

    private func applying(_ probabilities: [Float]) -> [String] {
        let thresholds = setting("thresholds", or: file.labels.map { _ in 0.5 })
        return file.labels.indices.filter { Double(probabilities[$0]) >= thresholds[$0] }.map { file.labels[$0] }
    }

    /// Return the tag of each word of a text or, where the file's unit is the character, of each code point.
    public func tag(_ text: String) throws -> [Tag] {
        let byCharacter = setting("unit", or: "word") == "character"
        let points = Points(text)
        let spans = byCharacter ? [0..<points.count] : words.spans(text)
        let tokens = spans.map { file.tokenizer.tokens(points.text($0)) }
        let stride = min(setting("stride", or: file.longest / 4), file.longest / 4)
        let windows = rows.windows(tokens.flatMap { $0 }, stride: stride)
        let outputs = try windows.map { Probabilities(flat: try output("probability", of: $0), labels: file.labels) }
        if byCharacter { return characterTags(text, windows, outputs) }
        let outside = file.labels.contains("O") ? "O" : file.labels[0]
        return wordTags(spans, tokens, windows, outputs, outside: outside)
    }

    private var words: Words {
        let words = setting("words", or: [String: [String]]())
        func set(_ name: String) -> Set<Points> { Set(words[name, default: []].map { Points($0) }) }
        return Words(prefixes: set("prefixes"), suffixes: set("suffixes"), whole: set("whole"))
    }

    /// Return the answer to a question in a text.
    public func answer(_ question: String, in text: String) throws -> Answer {
        let stride = setting("stride", or: file.longest / 4)
        let longestQuestion = setting("max_question_length", or: 64)
        let windows = rows.asked(question, text, stride: stride, longestQuestion: longestQuestion)
        let outputs = try windows.map(run)
        guard let starts = outputs.map({ $0["start_logits"] }) as? [[Float]],
            let ends = outputs.map({ $0["end_logits"] }) as? [[Float]]
        else { throw ModelError("A file of the kind \(file.kind) answers no questions.") }
        let nullAnswers = setting("null_answers", or: false)
        return bestAnswer(text, windows, starts: starts, ends: ends, nullAnswers: nullAnswers)
    }

    /// Return the vector of a text, of an embedder.
    public func embed(_ text: String) throws -> [Float] {
        let prompts = setting("prompts", or: [String: String]())
        return try output("embedding", of: rows.single(prompts[setting("default_prompt", or: ""), default: ""] + text))
    }
}
