import Foundation
import Testing

/// How README and the guides are written: `make prose` runs these tests alone.
struct ProseTests {
    private let readme: Prose
    private let guides: [Prose]
    private let internals: [Prose]

    init() throws {
        let text = try String(contentsOf: SourceTree.root.appendingPathComponent("README.md"), encoding: .utf8)
        readme = Prose(SourceTree.File(path: "README.md", text: text))
        let catalog = "Sources/Larder/Documentation.docc"
        guides = try SourceTree.files(below: catalog + "/Guides", suffix: ".md").map(Prose.init)
        internals = try SourceTree.files(below: catalog + "/Internals", suffix: ".md").map(Prose.init)
    }

    /// The places where a page says what matches.
    private func places(_ pattern: Regex<AnyRegexOutput>, in pages: [Prose]) -> [String] {
        pages.flatMap { page in
            page.sentences.filter { $0.contains(pattern) }.map { "\(page.path): \($0)" }
        }
    }

    @Test func `a guide is short, begins with code, and leads on`() {
        #expect(guides.count > 20)
        for guide in guides {
            #expect(guide.wordCount <= 900, "\(guide.path) has \(guide.wordCount) words")
            #expect(guide.firstSample.map { $0 <= 10 } == true, "\(guide.path) has its first code too late")
            let end = guide.lines.firstIndex(of: "## See Also").map { guide.lines[$0...] } ?? []
            #expect(end.contains { $0.contains("](") }, "\(guide.path) leads nowhere")
        }
        let (words, samples) = (guides.reduce(0) { $0 + $1.wordCount }, guides.reduce(0) { $0 + $1.sampleCount })
        print("prose: \(guides.count) guides, \(words) words, \(samples) samples, \(words / samples) words a sample")
        #expect(words / samples <= 150)
    }

    @Test func `README has at most 1,000 words, tables and code included`() {
        let count = readme.lines.reduce(0) { $0 + $1.split(separator: " ").count }
        #expect(count <= 1_000, "\(count)")
    }

    @Test func `a sentence has at most 28 words`() {
        for page in guides + [readme] {
            for sentence in page.sentences {
                let count = Prose.wordCount(sentence)
                #expect(count <= 28, "\(page.path), \(count) words: \(sentence)")
            }
        }
    }

    /// Words of which readers had to guess the meaning.
    private static var unclear: Regex<AnyRegexOutput> {
        get throws {
            let words = [
                "nobody", "somebody", "whoever", "meanwhile", "anew", "beside", "for ever", "by itself", "lets? go of",
                "gives? up", "is over", "is gone", "has to go", "decider", "sub-cache", "once more", "volume", "ledger",
                "burden", "flight", "aboard", "of others", "no wait",
            ]
            return try Regex("\\b(\(words.joined(separator: "|")))\\b").ignoresCase().wordBoundaryKind(.simple)
        }
    }

    @Test func `words that readers have stumbled over are nowhere`() throws {
        let pattern = try Self.unclear
        #expect(places(pattern, in: guides + [readme]) == [])
        #expect(places(try Regex("behind|the standard\\b"), in: guides + [readme]) == [])
        #expect(places(try Regex(";"), in: guides + [readme]) == [])
        for file in try SourceTree.files(below: "Sources") {
            // The name of a parameter is no word.
            let comments = file.lines.filter { $0.contains("///") && !$0.contains("- beside:") }
            #expect(comments.filter { $0.contains(pattern) } == [], "\(file.path)")
        }
    }

    /// A subject without a noun makes a reader look for it.
    @Test func `sentences name their subjects`() throws {
        let words = "what|whatever|whichever|who|those (that|who|of|which|in)|the ones?|the former|the latter"
        let verbs = "is|are|was|were|has|have|holds?|happens?|means?|can|do|does|applies|costs?|goes|takes?|makes?"
        let pattern = try Regex("(\\b(\(words))\\b)|(^(This|That|These|Those|Both|Each|Neither|All) (\(verbs))\\b)")
            .wordBoundaryKind(.simple)
        let found = places(pattern, in: guides)
        let share = Double(found.count) * 1_000 / Double(guides.reduce(0) { $0 + $1.wordCount })
        print("prose: \(share) headless pronouns in 1,000 words")
        #expect(share <= 2, "\(found)")
    }

    /// `make docs` looks whether DocC resolves them too.
    @Test func `links lead to files, where the project is stored`() {
        for page in guides + internals + [readme] {
            let isDocC = page.lines.contains { $0.contains("<doc:") || $0.contains("](doc:") }
            #expect(!isDocC, "\(page.path): only DocC resolves a link")
            let folder = SourceTree.root.appendingPathComponent(page.path).deletingLastPathComponent()
            for link in page.links {
                let file = folder.appendingPathComponent(link)
                #expect(FileManager.default.fileExists(atPath: file.path), "\(page.path): \(link)")
            }
        }
    }
}
