import Foundation
import Larder
import LarderTestSupport

/// Values that are loaded in a process of their own, and iterations over more entries than memory should hold.
extension CacheProgram {
    /// For each line with a key and a size, loads a value of that size whose bytes are the mark of this process.
    ///
    /// The load prints a line, and waits for another one before it returns. A line with a key alone asks for its entry.
    static func generate(_ path: String, mark: UInt8) async throws {
        let manager = try openManager(path)
        let cache: Cache<Int, Data> = try await manager.cache(
            named: "made", version: "1", maxAge: .unlimited, options: CacheOptions(inlineLimit: 1000))
        func words(of entry: CacheEntry<Int, Data>?) -> String {
            guard let entry else { return "nil" }
            let marks = Set(entry.value + (entry.extendedData ?? Data()))
            return "\(entry.value.count) \(marks.sorted()) \(entry.extendedData?.count ?? -1)"
        }
        while let line = readLine() {
            let numbers = line.split(separator: " ").compactMap { Int($0) }
            guard numbers.count == 2 else {
                say(words(of: try await cache.entry(forKey: numbers[0])))
                continue
            }
            let entry = try await cache.entry(forKey: numbers[0]) { _, _ in
                say("loading")
                _ = readLine()
                return .value(
                    Data(repeating: mark, count: numbers[1]), extendedData: Data(repeating: mark, count: Int(mark)))
            }
            say(words(of: entry))
        }
        try await manager.close()
    }

    // MARK: Many entries

    private static let entryCount = 25_000

    private static func many(_ manager: CacheManager) throws -> Cache<Int, Data> {
        try manager.cache(
            named: "many", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled))
    }

    /// Writes entries of 75 MB together.
    static func fillMany(_ path: String) throws {
        let manager = try openManager(path)
        let cache = try many(manager)
        let value = Data(repeating: 7, count: 3000)
        for start in stride(from: 0, to: entryCount, by: 1000) {
            try cache.setValues((start..<start + 1000).map { ($0, value) })
        }
        try manager.close()
    }

    /// Iterates over all entries in every form, and prints by how many kilobytes the memory in use has grown at most.
    static func iterate(_ path: String) async throws {
        let manager = try openManager(path)
        let cache = try many(manager)
        // The first pages load code and tables.
        for (key, _) in cache where key == 2000 { break }
        for key in cache.keys where key == 2000 { break }
        for entry in cache.entries(orderedBy: .written) where entry.key == 2000 { break }
        for try await (key, _) in cache.async where key == 2000 { break }

        var growth = try Growth()
        for (key, _) in cache { try growth.note(key) }
        growth.say("entries")
        growth = try Growth()
        for key in cache.keys { try growth.note(key) }
        growth.say("keys")
        growth = try Growth()
        for entry in cache.entries(orderedBy: .written) { try growth.note(entry.key) }
        growth.say("ordered")
        growth = try Growth()
        for try await (key, _) in cache.async { try growth.note(key) }
        growth.say("async")
        try await manager.close()
    }

    /// How much more memory is in use than at a start.
    private struct Growth {
        private let start: Int
        private var most = 0
        private var count = 0

        init() throws { start = try Self.resident() }

        mutating func note(_ key: Int) throws {
            count += 1
            if count.isMultiple(of: 1000) { most = max(most, try Self.resident() - start) }
        }

        func say(_ form: String) { LarderTestSupport.say(form, count, most) }

        private static func resident() throws -> Int {
            let words = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
            return (Int(words[1]) ?? 0) * Int(getpagesize()) / 1000
        }
    }
}
