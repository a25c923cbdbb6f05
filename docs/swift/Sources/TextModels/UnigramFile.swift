import Foundation

private typealias Step = [String: Any]

private let template = ["<s>", "A", "</s>", "</s>", "B", "</s>"]

/// Read a tokenizer.json of XLM-R.
///
/// - Throws: `ModelError` for another one; it names the part that is not read.
func unigram(_ content: Data) throws -> Unigram {
    let file = try JSONSerialization.jsonObject(with: content) as? Step ?? [:]
    let model = file["model"] as? Step ?? [:]
    guard model["type"] as? String == "Unigram", let rows = model["vocab"] as? [[Any]],
        let unknown = model["unk_id"] as? Int
    else { throw unread("the model \(model["type"] ?? "none")") }
    if model["byte_fallback"] as? Bool == true { throw unread("byte_fallback") }
    guard names(file["post_processor"]) == template else { throw unread("a post_processor other than that of XLM-R") }
    return try Unigram(
        pieces: rows.map { try piece($0) }, unknown: Int32(unknown),
        added: (file["added_tokens"] as? [Step] ?? []).map(addedToken),
        normalizers: steps(file["normalizer"], "normalizers").map(normalizer),
        splitsAtSpaces: splitsAtSpaces(steps(file["pre_tokenizer"], "pretokenizers")))
}

private func unread(_ part: String) -> ModelError {
    ModelError("tokenizer.json has \(part), which this package does not read.")
}

private func piece(_ row: [Any]) throws -> (points: Points, score: Double) {
    // A decimal number of Foundation would lose its last bit, which decides ties.
    guard let text = row[0] as? String, let score = (row[1] as? NSNumber).flatMap({ Double($0.stringValue) }) else {
        throw unread("the piece \(row)")
    }
    return (Points(text), score)
}

private func addedToken(_ token: Step) throws -> AddedToken {
    let text = token["content"] as? String ?? ""
    for flag in ["normalized", "single_word", "rstrip"] where token[flag] as? Bool != false {
        throw unread("the added token \(text) with \(flag)")
    }
    let id = Int32(token["id"] as? Int ?? 0)
    return AddedToken(points: Points(text), id: id, stripsLeft: token["lstrip"] as? Bool == true)
}

private func steps(_ section: Any?, _ list: String) -> [Step] {
    let step = section as? Step ?? [:]
    return step["type"] as? String == "Sequence" ? step[list] as? [Step] ?? [] : [step]
}

private func normalizer(_ step: Step) throws -> ([Letter]) -> [Letter] {
    switch step["type"] as? String ?? "none" {
    case "Precompiled":
        guard let map = Charsmap(base64: step["precompiled_charsmap"] as? String ?? "") else {
            throw unread("a broken precompiled_charsmap")
        }
        return map.normalized
    case "Nmt": return nmt
    case "NFKC": return nfkc
    case "Replace":
        let pattern = step["pattern"] as? [String: String] ?? [:]
        guard pattern == ["Regex": " {2,}"], step["content"] as? String == " " else {
            throw unread("a Replace of \(pattern)")
        }
        return withoutDoubleSpaces
    case let other: throw unread("the normalizer \(other)")
    }
}

private func splitsAtSpaces(_ steps: [Step]) throws -> Bool {
    let names = steps.map { $0["type"] as? String ?? "none" }
    if let other = names.first(where: { $0 != "WhitespaceSplit" && $0 != "Metaspace" }) {
        throw unread("the pre_tokenizer \(other)")
    }
    guard let spaces = steps.last, spaces["prepend_scheme"] as? String == "always", spaces["split"] as? Bool == true,
        names == ["Metaspace"] || names == ["WhitespaceSplit", "Metaspace"]
    else { throw unread("a Metaspace other than that of XLM-R") }
    return names.count == 2
}

private func names(_ postProcessor: Any?) -> [String] {
    let pair = (postProcessor as? Step)?["pair"] as? [[String: Step]] ?? []
    return pair.map { ($0["SpecialToken"] ?? $0["Sequence"])?["id"] as? String ?? "" }
}
