import Foundation

/// The project's own files, for rules that can be read off them.
struct SourceTree {
    struct File: Sendable {
        /// From the project's root.
        let path: String
        let text: String
        let lines: [Substring]
        /// The lines without those that are comments, so that rules see code only.
        let code: [Substring]

        init(path: String, text: String) {
            (self.path, self.text) = (path, text)
            lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map(Substring.init)
            let (space, slash) = (UInt8(ascii: " "), UInt8(ascii: "/"))
            code = lines.map { $0.utf8.drop { $0 == space }.starts(with: [slash, slash]) ? "" : $0 }
        }
    }

    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
        .standardizedFileURL

    /// The files below `folders` whose names end so.
    static func files(below folders: String..., suffix: String = ".swift") throws -> [File] {
        try folders.flatMap { folder in
            let base = root.appendingPathComponent(folder)
            return try FileManager.default.subpathsOfDirectory(atPath: base.path)
                .filter { $0.hasSuffix(suffix) && !$0.contains(".build/") }.sorted()
                .map { name in
                    let text = try String(contentsOf: base.appendingPathComponent(name), encoding: .utf8)
                    return File(path: folder + "/" + name, text: text)
                }
        }
    }

    /// Where a line of code of `files` matches, in the form `path:line`.
    static func places(_ files: [File], _ pattern: Regex<AnyRegexOutput>) -> [String] {
        files.flatMap { file in
            file.code.enumerated().filter { $0.element.contains(pattern) }.map { "\(file.path):\($0.offset + 1)" }
        }
    }
}

extension SourceTree {
    /// A checksum of a text (FNV-1a).
    static func sum(of text: String) -> UInt64 {
        text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0100_0000_01b3 }
    }
}
