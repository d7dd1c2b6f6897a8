import CSQLite
import Foundation

/// Another process that commits to a store when it is told to.
final class Committer {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    /// Commits to the file at `path`, which may be a store of the library's.
    init(_ path: String) {
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
        process.arguments = ["--committer", path]
        process.standardInput = input
        process.standardOutput = output
        do { try process.run() } catch { preconditionFailure("\(error)") }
    }

    deinit {
        do { try input.fileHandleForWriting.close() } catch { print(error) }
        process.waitUntilExit()
    }

    /// Returns when it has committed.
    func commit() {
        input.fileHandleForWriting.write(Data([1]))
        precondition(output.fileHandleForReading.readData(ofLength: 1).count == 1)
    }

    /// What a read of each key takes, with a commit before it that does not count.
    func nanosecondsAfterCommits(_ keys: [Int], _ read: (Int) -> Void) -> Double {
        var total = 0.0
        for key in keys {
            commit()
            total += nanoseconds(per: keys.count) { read(key) }
        }
        return total
    }

    /// What the other process does.
    static func serve(_ path: String) {
        var handle: OpaquePointer?
        precondition(sqlite3_open(path, &handle) == SQLITE_OK)
        sqlite3_busy_timeout(handle, 5000)
        precondition(
            sqlite3_exec(
                handle,
                "CREATE TABLE IF NOT EXISTS other (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO other VALUES (1, 0)"
                    + " ON CONFLICT DO NOTHING", nil, nil, nil) == SQLITE_OK)
        while FileHandle.standardInput.readData(ofLength: 1).count == 1 {
            precondition(sqlite3_exec(handle, "UPDATE other SET n = n + 1", nil, nil, nil) == SQLITE_OK)
            FileHandle.standardOutput.write(Data([1]))
        }
        sqlite3_close(handle)
    }
}
