import Foundation
import Larder

/// Another process on a store: does what each line of its input says, and answers with a line.
///
/// Usage: `larder-test-peer PATH VERSION [rows]`, with `rows` for no files; then `set KEY SIZE BYTE`, `get KEY`, `many KEY`,
/// `pass`, `take KEY`, `remove KEY`, `count`, `clear`, `open VERSION`, `maintain`, `memory`. Or `larder-test-peer warn PATH SILENT`,
/// which fails a write, or `larder-test-peer hold PATH`, which has a store open.
@main
struct PeerProgram {
    static func main() throws {
        // Should a test never end it, it ends itself.
        alarm(3600)
        let arguments = CommandLine.arguments
        if arguments[1] == "warn" { return try warn(arguments[2], isSilent: arguments[3] == "true") }
        if arguments[1] == "hold" { return try hold(arguments[2]) }
        var configuration = CacheManager.Configuration()
        // On a slow machine the other process may hold the file for long.
        configuration.busyTimeout = .seconds(120)
        let manager = try CacheManager(
            url: URL(fileURLWithPath: CommandLine.arguments[1]), configuration: configuration)
        var cache = try open(manager, CommandLine.arguments[2])
        while let line = readLine() {
            let words = line.split(separator: " ").map(String.init)
            do {
                if words[0] == "open" {
                    cache = try open(manager, words[1])
                    say("ok")
                } else {
                    say(try answer(words, cache))
                }
            } catch let error as CacheError {
                say("error \(error.code)")
            }
        }
    }

    private static func warn(_ path: String, isSilent: Bool) throws {
        let silent = CacheManager.Configuration(log: { _ in })
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: isSilent ? silent : .init())
        let cache: Cache<Int, String> = try manager.cache(named: "a", version: 1, maxAge: .hours(1))
        try manager.close()
        cache[1] = "x"
    }

    private static func hold(_ path: String) throws {
        let cache = try open(try CacheManager(url: URL(fileURLWithPath: path)), "1")
        cache["key"] = Data()
        say("open")
        _ = readLine()
    }

    /// A line at once, whatever the output is.
    private static func say(_ text: String) {
        FileHandle.standardOutput.write(Data((text + "\n").utf8))
    }

    private static func open(_ manager: CacheManager, _ version: String) throws -> Cache<String, Data> {
        try manager.cache(
            named: "shared", version: .custom(version), maxAge: .unlimited,
            options: CacheOptions(inlineLimit: CommandLine.arguments.last == "rows" ? .max : 1000))
    }

    private static func answer(_ words: [String], _ cache: Cache<String, Data>) throws -> String {
        switch words[0] {
        case "set":
            try cache.setValue(
                Data(repeating: UInt8(words[3]) ?? 0, count: Int(words[2]) ?? 0), forKey: words[1])
        case "get":
            return description(try cache.value(forKey: words[1]))
        case "many": return description(try cache.values(forKeys: [words[1]])[words[1]])
        case "pass": return cache.map { description($0.value) }.joined(separator: ", ")
        case "take": return description(try cache.removeValue(forKey: words[1]))
        case "remove": try cache.remove(words[1])
        case "count": return String(try cache.count)
        case "clear": try cache.removeAll()
        case "maintain": try cache.manager.maintain()
        case "memory": return try memory()
        default: return "what?"
        }
        return "ok"
    }

    /// A value's length and its byte.
    private static func description(_ value: Data?) -> String {
        guard let value else { return "nil" }
        // Compared as a whole: byte by byte it takes seconds in debug builds.
        let isWhole = value == Data(repeating: value.first ?? 0, count: value.count)
        return "\(value.count) \(isWhole ? String(value.first ?? 0) : "torn")"
    }

    /// The resident memory in kilobytes.
    private static func memory() throws -> String {
        let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        return String((Int(text.split(separator: " ")[1]) ?? 0) * 4)
    }
}
