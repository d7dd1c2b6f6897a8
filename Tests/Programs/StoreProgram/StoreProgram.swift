import Foundation
import Larder
import LarderSQLite
import LarderTestSupport

/// What the tests run in processes of their own.
///
/// Each verb prints its results line by line.
@main
struct StoreProgram {
    static func main() {
        // Should a test never end it, it ends itself.
        alarm(3600)
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard let verb = arguments.first else { exit(2) }
        do {
            try run(verb, Array(arguments.dropFirst()))
        } catch let error as CacheError {
            say("error", error.code)
        } catch {
            say("error", error)
        }
    }

    private static func run(_ verb: String, _ arguments: [String]) throws {
        switch verb {
        case "stamp": say(CacheVersion.buildStamp)
        case "open-named": say(try CacheManager(name: arguments[0]).url?.path ?? "none")
        case "open": try open(arguments[0])
        case "open-as-nobody": try openAsNobody(arguments[0], arguments.dropFirst().contains("read-only"))
        case "open-together": try openTogether(arguments[0], threads: 16)
        case "lock": try lock(arguments[0], verb: arguments[1])
        case "insert": try insert(arguments[0], from: arguments[1], count: arguments[2])
        case "open-without-descriptors": try openWithoutDescriptors(arguments[0])
        case "make-many": try makeMany(arguments[0], prefix: arguments[1])
        case "open-full": try openFull(arguments[0])
        case "read-and-write": readAndWrite(arguments[0])
        case "insert-until-full": try insertUntilFull(arguments[0])
        default: try runBlobs(verb, arguments)
        }
    }

    private static func open(_ path: String) throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path))
        say("opened")
        _ = readLine()
        try manager.close()
    }

    /// Opens as a user who is not root, to whom permissions apply.
    private static func openAsNobody(_ path: String, _ isReadOnly: Bool) throws {
        if getuid() == 0, setgid(65534) != 0 || setuid(65534) != 0 { exit(2) }
        var configuration = CacheManager.Configuration()
        if isReadOnly { configuration.access = .readOnly }
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: configuration)
        say("opened", try manager.store().rowCount())
        try manager.close()
    }

    /// Opens from many threads at once, when told to, and writes one row from each.
    private static func openTogether(_ path: String, threads: Int) throws {
        say("ready")
        _ = readLine()
        DispatchQueue.concurrentPerform(iterations: threads) { _ in
            do {
                let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: .patient)
                try manager.writableStore().insertRow(named: UUID().uuidString)
                try manager.close()
                say("done")
            } catch {
                say("failed", error)
            }
        }
    }

    /// Holds a lock of SQLite's until told to let go.
    private static func lock(_ path: String, verb: String) throws {
        var connection = try Connection.open(.file(path), .init(role: .writer, busyMilliseconds: 0))
        if verb == "EXCLUSIVE" { try connection.execute("PRAGMA locking_mode = EXCLUSIVE") }
        try connection.execute("BEGIN IMMEDIATE; UPDATE cache SET version = version; ")
        say("locked")
        _ = readLine()
        try connection.execute("ROLLBACK")
    }

    /// Writes rows and reports each once it is acknowledged.
    private static func insert(_ path: String, from first: String, count: String) throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: .patient)
        say("opened")
        for number in (Int(first) ?? 0)..<((Int(first) ?? 0) + (Int(count) ?? 0)) {
            try manager.writableStore().insertRow(named: "row \(number)")
            say(number)
        }
        try manager.close()
    }

    /// Opens, and reads with an open store, while the process may open no more files.
    private static func openWithoutDescriptors(_ path: String) throws {
        let url = URL(fileURLWithPath: path)
        var taken: [Int32] = []
        func take() {
            while true {
                let descriptor = dup(0)
                guard descriptor >= 0 else { return }
                taken.append(descriptor)
            }
        }
        func attempt(_ body: () throws -> Int) {
            do { say("rows", try body()) } catch { say("error", (error as? CacheError)?.code ?? "unknown") }
        }
        take()
        attempt { try CacheManager.rowCount(at: url) }
        for descriptor in taken { close(descriptor) }
        taken = []
        let manager = try CacheManager(url: url)
        take()
        // Its first read opens a reader.
        attempt { try manager.store().rowCount() }
        // One descriptor more at a time: what the read then sets in motion has to do without any.
        while let descriptor = taken.popLast() {
            close(descriptor)
            let rows: Int
            do throws(CacheError) {
                rows = try manager.store().rowCount()
            } catch {
                guard error.code == .storageUnavailable else { throw error }
                continue
            }
            return say("rows", rows)
        }
    }

    /// Opens, reads and writes, and says what each came to.
    private static func readAndWrite(_ path: String) {
        func attempt(_ what: String, _ body: () throws -> Int) -> Bool {
            do {
                say(what, try body())
                return true
            } catch {
                say(what, (error as? CacheError)?.code ?? "unknown")
                return false
            }
        }
        do {
            let manager = try CacheManager(url: URL(fileURLWithPath: path))
            for _ in 0..<2 where attempt("rows", { try manager.store().rowCount() }) { break }
            for number in 0..<2 {
                let done = attempt("wrote") {
                    try manager.writableStore().insertRow(named: "new \(UUID())")
                    return number
                }
                if done { break }
            }
            try manager.close()
        } catch {
            say("error", error.code)
        }
    }

    /// Makes store after store and writes a few rows into each, until it is killed; reports what is acknowledged.
    private static func makeMany(_ folder: String, prefix: String) throws {
        for number in 0..<1000 {
            let name = "\(prefix)-\(number).sqlite"
            for pass in 0..<2 {
                let manager = try CacheManager(
                    url: URL(fileURLWithPath: folder + "/" + name), configuration: .patient)
                for row in 1...2 {
                    try manager.writableStore().insertRow(named: "\(pass) \(row)")
                    say(name, pass * 2 + row)
                }
                try manager.close()
            }
        }
    }

    /// Opens on a volume without room, then with some.
    private static func openFull(_ folder: String) throws {
        let url = URL(fileURLWithPath: folder + "/store.sqlite")
        do {
            let manager = try CacheManager(url: url)
            try manager.writableStore().insertRow(named: String(repeating: "x", count: 60_000))
            say("had room")
        } catch {
            say("error", error.code)
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        if names.contains(where: { $0.contains("corrupt") }) { say("set aside") }
        try FileManager.default.removeItem(atPath: folder + "/ballast")
        let manager = try CacheManager(url: url)
        try manager.writableStore().insertRow(named: "works")
        say("opened with room")
    }

    /// Opens and writes on a volume that has no room for much, and says what came of it.
    private static func insertUntilFull(_ path: String) throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path))
        say("opened")
        var count = 0
        do {
            while count < 100_000 {
                try manager.writableStore().insertRow(named: String(repeating: "x", count: 4000) + String(count))
                count += 1
            }
            say("never full")
        } catch {
            say("full", error.code, try manager.store().rowCount() == count)
        }
        // Room again: the next write works.
        try FileManager.default.removeItem(atPath: (path as NSString).deletingLastPathComponent + "/ballast")
        try manager.writableStore().insertRow(named: "after")
        say("again", try manager.store().rowCount() == count + 1)
    }
}
