import Foundation
import Testing

struct SnippetTests {
    @Test func `every snippet of README and of the documentation stands in a program that is compiled`() throws {
        let readme = try String(contentsOf: SourceTree.root.appendingPathComponent("README.md"), encoding: .utf8)
        let pages = try SourceTree.files(below: "Sources/Larder/Documentation.docc", suffix: ".md")
        let programs = try SourceTree.files(below: "Examples").map { bare($0.text) }
        // A whole Package.swift is built by `make examples`.
        let snippets = ([readme] + pages.map(\.text)).flatMap(snippets).filter {
            !$0.hasPrefix("// swift-tools-version")
        }
        #expect(snippets.count > 3)
        for snippet in snippets {
            #expect(programs.contains { contains($0, bare(snippet)) }, "\(snippet)")
        }
    }

    @Test func `the output that README shows is that of the example`() throws {
        let readme = try String(contentsOf: SourceTree.root.appendingPathComponent("README.md"), encoding: .utf8)
        let expected = try SourceTree.files(below: "Examples/Expected", suffix: ".txt").map { bare($0.text) }
        let outputs = blocks("text", of: readme)
        #expect(outputs.count == 1)
        for output in outputs { #expect(expected.contains { contains($0, bare(output)) }, "\(output)") }
    }

    /// The blocks marked as Swift.
    private func snippets(of page: String) -> [String] { blocks("swift", of: page) }

    private func blocks(_ kind: String, of page: String) -> [String] {
        page.split(separator: "```\(kind)\n").dropFirst().compactMap {
            $0.split(separator: "```").first.map(String.init)
        }
    }

    /// The lines without empty ones, and with one space where there are several: pages may align comments.
    private func bare(_ text: String) -> [String] {
        text.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }.filter { !$0.isEmpty }
    }

    private func contains(_ lines: [String], _ part: [String]) -> Bool {
        guard part.count <= lines.count else { return false }
        return (0...(lines.count - part.count)).contains { Array(lines[$0..<($0 + part.count)]) == part }
    }
}
