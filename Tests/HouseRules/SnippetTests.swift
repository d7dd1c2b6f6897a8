import Foundation
import Testing

struct SnippetTests {
    // case 325
    @Test func `every snippet of README and of the documentation stands in a program that is compiled`() throws {
        let readme = try String(contentsOf: SourceTree.root.appendingPathComponent("README.md"), encoding: .utf8)
        let pages = try SourceTree.files(below: "Sources/Larder/Documentation.docc", suffix: ".md")
        let programs = try SourceTree.files(below: "Examples/Sources").map { bare($0.text) }
        let snippets = ([readme] + pages.map(\.text)).flatMap(snippets)
        #expect(snippets.count > 3)
        for snippet in snippets {
            #expect(programs.contains { contains($0, bare(snippet)) }, "\(snippet)")
        }
    }

    /// The blocks marked as Swift.
    private func snippets(of page: String) -> [String] {
        page.split(separator: "```swift\n").dropFirst().compactMap { $0.split(separator: "```").first.map(String.init) }
    }

    /// The lines without their indentation, and without empty ones.
    private func bare(_ text: String) -> [String] {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    private func contains(_ lines: [String], _ part: [String]) -> Bool {
        guard part.count <= lines.count else { return false }
        return (0...(lines.count - part.count)).contains { Array(lines[$0..<($0 + part.count)]) == part }
    }
}
