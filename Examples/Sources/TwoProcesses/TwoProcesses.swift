import Foundation
import Larder

/// Two processes on one store: they count together, see each other's changes, and meet a busy store.
///
/// The program starts itself a second time, as `TwoProcesses other`.
@main
struct TwoProcesses {
    static func main() async throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("larder-two/counters.sqlite")
        if CommandLine.arguments.last == "other" { return try other(url) }

        let manager = try CacheManager(url: url, configuration: configuration)
        let counters = try open(manager)
        try await counters.setValue(0, forKey: "together")
        let impatient = try open(
            try CacheManager(url: url, configuration: .init(busyTimeout: .milliseconds(50), maintenanceInterval: nil)))
        let (process, input, output) = (Process(), Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
        process.arguments = ["other"]
        (process.standardInput, process.standardOutput) = (input, output)
        var changes = counters.changes(forKey: "together").makeAsyncIterator()
        _ = await changes.next()
        try process.run()

        for _ in 1...500 { try await add(1, to: counters) }
        // The stream looks for commits of others ten times a second.
        while let count = await changes.next(), count != 1_000 {}
        print("Two processes have counted to \(counters["together"] ?? 0).")

        input.fileHandleForWriting.write(Data("hold\n".utf8))
        _ = output.fileHandleForReading.availableData
        print("The other one keeps the writer.")
        do {
            try await impatient.setValue(0, forKey: "together")
        } catch let error as CacheError where error.code == .busy {
            print("A write is refused: \(error.code).")
        }
        print("Reads go on: \(try await counters.disk.value(forKey: "together") ?? 0).")
        try input.fileHandleForWriting.close()
        process.waitUntilExit()
        try await counters.setValue(0, forKey: "together")
        print("Afterwards writes go on: \(counters["together"] ?? -1).")
        try await manager.close()
    }

    /// Without maintenance, which would wait for the writer too.
    private static var configuration: CacheManager.Configuration { .init(maintenanceInterval: nil) }

    private static func open(_ manager: CacheManager) throws -> Cache<String, Int> {
        try manager.cache(named: "counters", version: "1", maxAge: .unlimited)
    }

    /// Reads and writes with no other writer in between, of whatever process.
    private static func add(_ number: Int, to counters: Cache<String, Int>) async throws {
        try await counters.manager.transaction { transaction in
            let old = try transaction.value(forKey: "together", in: counters) ?? 0
            try transaction.setValue(old + number, forKey: "together", in: counters)
        }
    }

    /// The second process.
    private static func other(_ url: URL) throws {
        let manager = try CacheManager(url: url, configuration: configuration)
        let counters = try open(manager)
        for _ in 1...500 { try counters.update("together") { $0 = ($0 ?? 0) + 1 } }
        // The first process is done with counting.
        _ = readLine()
        try manager.transaction { _ in
            FileHandle.standardOutput.write(Data("holding\n".utf8))
            // Until the first process closes the pipe.
            _ = FileHandle.standardInput.readDataToEndOfFile()
        }
        try manager.close()
    }
}
