import Foundation

/// A page of README or of the guides, as sentences.
struct Prose {
    let path: String
    /// The lines outside of code.
    let lines: [Substring]
    /// The number of blocks of code.
    let sampleCount: Int
    /// The number of the first line of code; nil if there is none.
    let firstSample: Int?

    init(_ file: SourceTree.File) {
        path = file.path
        var (lines, count, first, isCode) = ([Substring](), 0, Int?.none, false)
        for (index, line) in file.lines.enumerated() {
            if line.hasPrefix("```") {
                isCode.toggle()
                count += isCode ? 1 : 0
                first = first ?? index + 1
                lines.append("")
            } else if !isCode {
                lines.append(line)
            }
        }
        (self.lines, sampleCount, firstSample) = (lines, count, first)
    }

    var sentences: [String] { Self.units(lines).flatMap(Self.sentences) }

    var wordCount: Int { sentences.reduce(0) { $0 + Self.wordCount($1) } }

    static func wordCount(_ text: String) -> Int {
        text.matches(of: #/[A-Za-z0-9’'/.–-]*[A-Za-z0-9][A-Za-z0-9’'/.–-]*/#).count
    }

    /// The places of links that lead to a file here.
    var links: [String] {
        lines.filter { $0.contains("](") }
            .flatMap { $0.matches(of: /\]\(([^)#]+)[^)]*\)/).map { String($0.1) } }.filter { !$0.contains("://") }
    }

    /// Paragraphs, items of lists and cells of tables.
    private static func units(_ lines: [Substring]) -> [String] {
        var (units, paragraph) = ([String](), [String]())
        func end() {
            if !paragraph.isEmpty { units.append(paragraph.joined(separator: " ")) }
            paragraph = []
        }
        for line in lines {
            let line = line.trimmingCharacters(in: .whitespaces)
            if line.isEmpty || line.hasPrefix("#") || line.hasPrefix("<!--") || line.hasPrefix("|") { end() }
            if line.isEmpty || line.hasPrefix("#") || line.hasPrefix("<!--") { continue }
            if line.hasPrefix("|") {
                if line.contains(/[A-Za-z]/) { units += line.split(separator: "|").map(String.init) }
                continue
            }
            if line.contains(#/^([-*]|\d+\.) /#) { end() }
            paragraph.append(
                line.replacing(#/^([-*]|\d+\.) /#, with: "").replacing(#/^> ?((Note|Important|Warning): )?/#, with: ""))
        }
        end()
        return units
    }

    /// Code counts as one word.
    private static func sentences(_ unit: String) -> [String] {
        let text = unit.replacing(/``[^`]+``|`[^`]+`/, with: "X").replacing(/!?\[([^\]]*)\]\([^)]*\)/) { $0.1 }
            .replacing("*", with: "")
        var (sentences, sentence) = ([String](), "")
        for word in text.split(separator: " ") {
            if let last = sentence.last, ".!?:".contains(last), word.first?.isUppercase == true {
                sentences.append(sentence)
                sentence = ""
            }
            sentence += (sentence.isEmpty ? "" : " ") + word
        }
        return sentence.isEmpty ? sentences : sentences + [sentence]
    }
}
