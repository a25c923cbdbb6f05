import Foundation

/// An answer in a text. `probability` is the softmax of `score` over all likely answers.
public struct Answer {
    public let text: String
    public let span: Range<Int>  // code points
    public let score: Float
    public let probability: Double
}

private let candidatesOfWindow = 20  // of first and of last tokens
private let mostTokens = 30  // of an answer

/// Return the likeliest answer: one window has all of it, and the sum of the logits of its first and last token
/// is the highest. With `nullAnswers` its text is empty where both at [CLS], the least of all windows, are higher.
func bestAnswer(_ text: String, _ windows: [Row], starts: [[Float]], ends: [[Float]], nullAnswers: Bool) -> Answer {
    let points = Points(text)
    var scores: [Range<Int>: Float] = [:]
    var distinct: [Range<Int>] = []  // in order, as of equal scores the first counts
    for (i, window) in windows.enumerated() {
        let spans = window.tokens.map { points.withoutSpaces($0) }
        let places = spans.indices.filter { !spans[$0].isEmpty }
        func likeliest(_ logits: [Float]) -> ArraySlice<Int> {
            places.sorted { logits[window.first + $0] > logits[window.first + $1] }.prefix(candidatesOfWindow)
        }
        let lasts = likeliest(ends[i])
        for a in likeliest(starts[i]) {
            for b in lasts where a <= b && b < a + mostTokens {
                let span = spans[a].lowerBound..<points.characterEnd(spans[b].upperBound)
                let score = starts[i][window.first + a] + ends[i][window.first + b]
                if scores[span] == nil { distinct.append(span) }
                scores[span] = max(scores[span] ?? score, score)
            }
        }
    }
    var candidates = distinct.map { (span: $0, score: scores[$0]!) }
    if nullAnswers { candidates.append((0..<0, zip(starts, ends).map { $0[0] + $1[0] }.min()!)) }
    guard let best = candidates.max(by: { $0.score < $1.score }) else {
        return Answer(text: "", span: 0..<0, score: 0, probability: 1)
    }
    let total = candidates.reduce(0) { $0 + exp(Double($1.score - best.score)) }
    return Answer(text: points.text(best.span), span: best.span, score: best.score, probability: 1 / total)
}
