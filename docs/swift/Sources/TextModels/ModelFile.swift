import Foundation

/// What a reader can mend; its description is a sentence.
public struct ModelError: Error, CustomStringConvertible {
    public let description: String
    init(_ description: String) { self.description = description }
}

/// What `export_tflite` wrote behind the model of a .tflite file, as a zip archive.
public struct ModelFile {
    public let kind: String
    public let labels: [String]
    public let longest: Int
    /// How the model was trained to read texts.
    public let task: [String: Any]
    let tokenizer: Tokenizer

    /// - Throws: `ModelError` for a file of another program, or with another tokenizer.
    public init(_ path: URL) throws {
        let files = try storedFiles(Data(contentsOf: path, options: .alwaysMapped), name: path.lastPathComponent)
        guard let content = files["tokenizer_config.json"],
            let settings = try JSONSerialization.jsonObject(with: content) as? [String: Any],
            let kind = settings["kind"] as? String, let longest = settings["model_max_length"] as? Int
        else { throw ModelError("\(path.lastPathComponent) has no settings; write it by export_tflite.") }
        (self.kind, self.longest) = (kind, longest)
        labels = files["labels.txt"].map(lines) ?? []
        task = settings["task"] as? [String: Any] ?? [:]
        if let content = files["tokenizer.json"] {
            tokenizer = try unigram(content)
            return
        }
        guard let vocabulary = files["vocab.txt"], let lowercase = settings["do_lower_case"] as? Bool else {
            throw ModelError("\(path.lastPathComponent) has no vocab.txt; write it by export_tflite.")
        }
        let reading = Reading(
            lowercase: lowercase,
            stripAccents: settings["strip_accents"] as? Bool ?? lowercase,
            splitIdeographs: settings["tokenize_chinese_chars"] as? Bool ?? true)
        tokenizer = try WordPiece(vocabulary: lines(vocabulary), reading: reading)
    }
}

/// Return the lines of a text; a mark after a line break is no part of it, as it would be of Swift's characters.
private func lines(_ content: Data) -> [String] {
    String(decoding: content, as: UTF8.self).unicodeScalars
        .split(separator: "\n", omittingEmptySubsequences: false).map { String($0) }
}

/// Return the files of a zip archive at the end of a file, none of which is compressed.
private func storedFiles(_ data: Data, name: String) throws -> [String: Data] {
    func number(_ place: Int, _ size: Int) -> Int {
        data[place..<place + size].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    let (end, entry, local) = (22, 46, 30)  // sizes of the fixed parts
    guard data.count >= end, number(data.count - end, 4) == 0x0605_4B50 else {
        throw ModelError("\(name) has no settings behind its model; write it by export_tflite.")
    }
    var files: [String: Data] = [:]
    var place = number(data.count - 6, 4)
    for _ in 0..<number(data.count - 12, 2) {
        let (nameSize, extraSize, commentSize) = (number(place + 28, 2), number(place + 30, 2), number(place + 32, 2))
        let header = number(place + 42, 4)
        let start = header + local + number(header + 26, 2) + number(header + 28, 2)
        let fileName = String(decoding: data[place + entry..<place + entry + nameSize], as: UTF8.self)
        files[fileName] = data[start..<start + number(place + 20, 4)]
        place += entry + nameSize + extraSize + commentSize
    }
    return files
}
