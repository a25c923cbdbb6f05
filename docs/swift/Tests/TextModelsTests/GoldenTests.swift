import Foundation
import XCTest

@testable import TextModels

/// Rows and answers against golden files: X.json, from `export_tflite --golden`, of each X.tflite.
///
/// They lie in the folder GOLDEN of the environment, or in that of the Kotlin tests. The model does not run:
/// each row gets the outputs that the golden file has for it.
final class GoldenTests: XCTestCase {
    private static let kotlin = URL(fileURLWithPath: #filePath)
        .appendingPathComponent("../../../../android/text/src/test/resources/golden").standardizedFileURL

    func testRowsAndAnswersAreThoseOfPython() throws {
        let other = ProcessInfo.processInfo.environment["GOLDEN"]
        for folder in [Self.kotlin] + (other.map { [URL(fileURLWithPath: $0)] } ?? []) {
            let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
                .filter { $0.pathExtension == "tflite" }
            XCTAssertFalse(files.isEmpty)
            for file in files { try check(file) }
        }
    }

    private func check(_ path: URL) throws {
        let file = try ModelFile(path)
        let golden = try Data(contentsOf: path.deletingPathExtension().appendingPathExtension("json"))
        let content = try JSONSerialization.jsonObject(with: golden) as! [String: Any]
        for input in content["inputs"] as! [[String: Any]] {
            let message = "\(path.lastPathComponent), \(input["text"]!)"
            var rows = input["rows"] as! [[String: Any]]
            let model = TextModel(file) { row in
                XCTAssertFalse(rows.isEmpty, message)
                let expected = rows.removeFirst()
                XCTAssertEqual(row.ids, expected["ids"] as! [Int32], message)
                XCTAssertEqual(row.segmentIDs, expected["segment_ids"] as! [Int32], message)
                return (expected["outputs"] as! [String: Any]).mapValues(floats)
            }
            try compare(file.kind, model, input, message)
            XCTAssert(rows.isEmpty, message)
        }
    }

    private func compare(_ kind: String, _ model: TextModel, _ input: [String: Any], _ message: String) throws {
        let text = input["text"] as! String
        let second = input["second"] as? String
        if kind == "embedder" {
            XCTAssertEqual(try model.embed(text), floats(input["answer"]!), message)
            return
        }
        let answer = input["answer"] as! [String: Any]
        switch kind {
        case "classifier", "multi-label classifier":
            let labels = try model.classify(text, second)
            XCTAssertEqual(labels.labels, answer["labels"] as? [String] ?? [answer["label"] as! String], message)
            XCTAssertEqual(labels.truncated, answer["truncated"] as! Bool, message)
        case "tagger":
            let tags = try model.tag(text)
            XCTAssertEqual(tags.map(\.tag), answer["tags"] as! [String], message)
            XCTAssertEqual(tags.map { [$0.span.lowerBound, $0.span.upperBound] }, answer["spans"] as! [[Int]], message)
            XCTAssertEqual(tags.map(\.score), floats(answer["scores"]!), message)
        case "answerer":
            let best = try model.answer(text, in: second!)
            XCTAssertEqual(best.text, answer["text"] as! String, message)
            XCTAssertEqual(best.span, (answer["start"] as! Int)..<(answer["end"] as! Int), message)
            XCTAssertEqual(Double(best.score), answer["score"] as! Double, accuracy: 1e-6, message)
            XCTAssertEqual(best.probability, answer["probability"] as! Double, accuracy: 1e-6, message)
        default: XCTFail("The package does not run files of the kind \(kind).")
        }
    }
}

/// Return the numbers of nested arrays, one after the other.
private func floats(_ value: Any) -> [Float] {
    if let values = value as? [Any] { return values.flatMap(floats) }
    return [(value as! NSNumber).floatValue]
}
