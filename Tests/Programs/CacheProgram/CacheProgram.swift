import Foundation
import Larder
import LarderTestSupport

/// What tests of caches run in processes of their own.
@main
struct CacheProgram {
    static func main() async {
        // It ends even if no test ends it.
        alarm(3600)
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            guard arguments.count > 1, try await run(arguments[0], arguments[1], Array(arguments.dropFirst(2))) else {
                exit(2)
            }
        } catch {
            say("error", code(of: error))
        }
    }

    /// Does what a word says with a path, and returns false if there is no such word.
    private static func run(_ word: String, _ path: String, _ rest: [String]) async throws -> Bool {
        switch (word, rest.count) {
        case ("work", 3): try work(path, seed: rest[0], version: rest[1], durability: rest[2])
        case ("share", 2): try share(path, seed: rest[0], place: rest[1])
        case ("record", 3): try record(path, seed: rest[0], durability: rest[1], steps: rest[2])
        case ("count", 0): try count(path, threads: 6)
        case ("mix", 2):
            say("mixing")
            try Mixture(URL(fileURLWithPath: path), rounds: Int(rest[0]) ?? 1, reads: rest[1] == "true").run()
            say("mixed")
        case ("hit", 0): try hit(path)
        case ("hold-up", 0): try await holdUp(path)
        case ("in-memory", 0): try stayInMemory(path)
        case ("generate", 1): try await generate(path, mark: UInt8(rest[0]) ?? 0)
        case ("fill-many", 0): try fillMany(path)
        case ("iterate", 0): try await iterate(path)
        case ("read-and-write", 0): try readAndWrite(path)
        case ("open-together", 1): try openTogether(path, index: Int(rest[0]) ?? 0)
        case ("open-as-nobody", 1): try openAsNobody(path, isReadOnly: rest[0] == "read")
        case ("salvage-full", 0): try salvageOnFullDisk(path)
        case ("fill-disk", 1): try fillDisk(path, valueSize: Int(rest[0]) ?? 0)
        case ("hold-floor", 0): try holdFloor(path)
        case ("migrate", 2): try migrate(path, from: Int(rest[0]) ?? 0, until: Int(rest[1]) ?? 0)
        case ("migrate-full", 0): try migrateOnFullDisk(path)
        case ("take-file", 1): try takeFile(path, megabytes: Int(rest[0]) ?? 1)
        default: return false
        }
        return true
    }

    static func openManager(
        _ path: String, _ change: (inout CacheManager.Configuration) -> Void = { _ in }
    ) throws(CacheError) -> CacheManager {
        var configuration = CacheManager.Configuration.patient
        change(&configuration)
        return try CacheManager(url: URL(fileURLWithPath: path), configuration: configuration)
    }

    /// Returns the code of the error that `body` throws, or "done".
    static func outcome(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "done"
        } catch {
            return code(of: error)
        }
    }

    /// Returns the code of an error of the library, or all of another error.
    static func code(of error: any Error) -> String { (error as? CacheError)?.code.description ?? "\(error)" }

    // MARK: Work without end

    private static func durability(_ word: String) -> CacheManager.Durability {
        word == "powerLoss" ? .powerLoss : .processCrash
    }

    /// Makes changes that follow from a seed, and prints the number of each once it is acknowledged.
    private static func work(_ path: String, seed: String, version: String, durability word: String) throws {
        let manager = try openManager(path) { $0.durability = durability(word) }
        var caches = try MixedCaches(manager, version: Int(version) ?? 1)
        var work = MixedWork(seed: UInt64(seed) ?? 1)
        for number in 1...100_000 {
            try caches.perform(work.next())
            say(number)
        }
    }

    /// Makes changes next to another process, and prints the number of each step once it is acknowledged.
    ///
    /// A step changes keys of its own, and keys that both processes change.
    private static func share(_ path: String, seed: String, place: String) throws {
        let manager = try openManager(path)
        var caches = try MixedCaches(manager, version: 1)
        var contended = try ContendedCaches(manager, version: nil)
        let seed = UInt64(seed) ?? 1
        var work = MixedWork(seed: seed, place: Int(place) ?? 0)
        var contendedWork = ContendedWork(seed: seed &+ 1)
        for number in 1...100_000 {
            try caches.perform(work.next())
            try contended.perform(contendedWork.next())
            say(number)
        }
    }

    /// Makes changes under a tracer, and prints the number of each once it is acknowledged.
    ///
    /// All upkeep is done after every few, which copies the log.
    private static func record(_ path: String, seed: String, durability word: String, steps: String) throws {
        let manager = try openManager(path) {
            $0.durability = durability(word)
            $0.maintenanceInterval = nil
        }
        var caches = try MixedCaches(manager, version: 1)
        var work = MixedWork(seed: UInt64(seed) ?? 1)
        for number in 1...(Int(steps) ?? 1) {
            try caches.perform(work.next())
            if number % MixedWork.stepsPerCopy == 0 { try manager.maintain() }
            say(number)
        }
        try manager.close()
    }

    /// Counts up on many threads, each in an entry of its own, and prints each number once it is acknowledged.
    private static func count(_ path: String, threads: Int) throws {
        let cache: Cache<Int, Int> = try openManager(path).cache(named: "counts", version: "1", maxAge: .unlimited)
        DispatchQueue.concurrentPerform(iterations: threads) { thread in
            do {
                var number = try cache.value(forKey: thread) ?? 0
                while number < 1_000_000 {
                    number += 1
                    try cache.setValue(number, forKey: thread)
                    say(thread, number)
                }
            } catch {
                say("error", error)
            }
        }
    }
}
