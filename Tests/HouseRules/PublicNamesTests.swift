import Foundation
import Testing

/// The page *Public names* has what programs can use, and nothing else.
///
/// A list has the declarations, with types and effects.
struct PublicNamesTests {
    private static let page = "Sources/Larder/Documentation.docc/Internals/PublicNames.md"
    private static let list = "Tests/PublicDeclarations.txt"
    private static let modules = [
        "Larder", "LarderTesting", "LarderHTTP", "LarderShared", "LarderRedis", "LarderRedisTLS", "LarderCBOR",
    ]

    private struct Graph: Decodable {
        struct Symbol: Decodable {
            struct Identifier: Decodable { let precise: String }
            struct Fragment: Decodable { let spelling: String }
            let identifier: Identifier
            let pathComponents: [String]
            let declarationFragments: [Fragment]
        }

        let symbols: [Symbol]
    }

    /// Where the modules of this build are.
    private static var moduleFolder: String {
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("Modules")
            .path
    }

    private static var isBuilt: Bool {
        modules.allSatisfy { FileManager.default.fileExists(atPath: "\(moduleFolder)/\($0).swiftmodule") }
    }

    private static func run(_ words: [String]) throws -> Data {
        let (process, output) = (Process(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = words
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "\(words.prefix(3)) has failed")
        return data
    }

    /// What a module declares; what belongs to a type of another module is under that type.
    private static func symbols(of module: String, _ target: String) throws -> [Graph.Symbol] {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("names-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { do { try FileManager.default.removeItem(at: folder) } catch { Issue.record(error) } }
        let maps = ["LarderCSQLite", "LarderCOpenSSL", "LarderCLocks"].flatMap {
            ["-Xcc", "-fmodule-map-file=\(SourceTree.root.path)/Sources/\($0)/module.modulemap"]
        }
        _ = try run(
            [
                "swift", "symbolgraph-extract", "-module-name", module, "-minimum-access-level", "public",
                "-output-dir",
                folder.path, "-I", moduleFolder, "-target", target,
            ] + maps)
        return try FileManager.default.contentsOfDirectory(atPath: folder.path).flatMap { file in
            let data = try Data(contentsOf: folder.appendingPathComponent(file))
            return try JSONDecoder().decode(Graph.self, from: data).symbols
        }.filter { !$0.identifier.precise.contains("::SYNTHESIZED::") }
    }

    /// The page, and the list.
    private static func texts() throws -> (page: String, list: String) {
        struct Info: Decodable {
            struct Target: Decodable { let unversionedTriple: String }
            let target: Target
        }
        let target = try JSONDecoder().decode(Info.self, from: run(["swift", "-print-target-info"])).target
        var text = """
            # Public names

            The names that programs can use, by product and type.

            ## Overview

            The page is made from the modules. A test shows each difference, and `ACCEPT=1 swift test --filter PublicNamesTests` writes it
            again. Names of Apple's systems alone are not on it. Overloads have one name. They do not change before version 2: see
            [Compatibility](../Guides/Compatibility.md). `Tests/PublicDeclarations.txt` has each declaration.

            A call that acts on a key takes it without a label: `contains(_:)`, `remove(_:)`, `touch(_:)`, `update(_:)`, `explain(_:)`,
            `observed(_:)`. A call about something that belongs to a key has the label `forKey:`.


            """
        var list = ""
        for module in modules {
            let symbols = try symbols(of: module, target.unversionedTriple)
            var names: [String: Set<String>] = [:]
            for path in symbols.map(\.pathComponents) {
                names[path[0], default: []].formUnion(path.count > 1 ? [path.dropFirst().joined(separator: ".")] : [])
            }
            let declarations = symbols.map { symbol in
                let owner = symbol.pathComponents.dropLast().joined(separator: ".")
                let words = symbol.declarationFragments.map(\.spelling).joined().split(whereSeparator: \.isWhitespace)
                return (owner.isEmpty ? "" : owner + ": ") + words.joined(separator: " ")
            }
            list += "\(module)\n" + declarations.sorted().map { "    \($0)\n" }.joined()
            text += "### \(module)\n\n"
            for (type, members) in names.sorted(by: { $0.key < $1.key }) {
                let list = members.sorted().map { "`\($0)`" }.joined(separator: ", ")
                text += "- `\(type)`" + (list.isEmpty ? "" : ": " + list) + "\n"
            }
            text += "\n"
        }
        return (text.trimmingCharacters(in: .newlines) + "\n", list)
    }

    @Test(.enabled(if: isBuilt, "needs all modules in one folder"))
    func `the page and the list have what programs can use`() throws {
        let texts = try Self.texts()
        try Self.compare(texts.page, with: Self.page)
        try Self.compare(texts.list, with: Self.list)
    }

    private static func compare(_ text: String, with path: String) throws {
        let file = SourceTree.root.appendingPathComponent(path)
        if ProcessInfo.processInfo.environment["ACCEPT"] == "1" {
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        let page = try String(contentsOf: file, encoding: .utf8)
        func lines(_ text: String) -> [String] { text.components(separatedBy: "\n") }
        let changes = lines(text).difference(from: lines(page)).map { change in
            switch change {
            case .insert(_, let line, _): "+ \(line)"
            case .remove(_, let line, _): "- \(line)"
            }
        }
        #expect(changes.isEmpty, "\(changes.joined(separator: "\n"))")
    }
}
