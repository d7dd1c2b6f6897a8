import Foundation
import Testing

struct SnippetTests {
    @Test func `every snippet of README and of the documentation stands in a program that is compiled`() throws {
        let readme = try String(contentsOf: SourceTree.root.appendingPathComponent("README.md"), encoding: .utf8)
        let pages = try SourceTree.files(below: "Sources/Larder/Documentation.docc", suffix: ".md")
        let programs = try SourceTree.files(below: "Examples").map { bare($0.text) }.joined()
        // A whole Package.swift is built by `make examples`.
        let snippets = ([readme] + pages.map(\.text)).flatMap(snippets).filter {
            !$0.hasPrefix("// swift-tools-version")
        }
        #expect(snippets.count > 3)
        for snippet in snippets {
            #expect(programs.range(of: bare(snippet)) != nil, "\(snippet)")
        }
    }

    /// The blocks marked as Swift.
    private func snippets(of page: String) -> [String] { blocks("swift", of: page) }

    private func blocks(_ kind: String, of page: String) -> [String] {
        page.split(separator: "```\(kind)\n").dropFirst().compactMap {
            $0.split(separator: "```").first.map(String.init)
        }
    }

    /// The lines without empty ones, and with one space where there are several: pages may align comments.
    private func bare(_ text: String) -> String {
        "\n"
            + text.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
            .filter { !$0.isEmpty }.joined(separator: "\n") + "\n"
    }
}
