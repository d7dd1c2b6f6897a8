import Foundation
import Larder

/// Another process that sets keys when it is told to, in a store of the library's or a plain table.
final class Writer {
    static let count = 1_000

    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    /// - Parameter kind: `store` or `table`.
    init(_ kind: String, _ path: String) {
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
        process.arguments = ["--writer", kind, path]
        process.standardInput = input
        process.standardOutput = output
        attempt { try process.run() }
        wait()
    }

    deinit {
        do { try input.fileHandleForWriting.close() } catch { print(error) }
        process.waitUntilExit()
    }

    /// Lets it begin.
    func start() { input.fileHandleForWriting.write(Data([1])) }

    /// Returns when it is done.
    func wait() { precondition(output.fileHandleForReading.readData(ofLength: 1).count == 1) }

    /// What the other process does; its keys are odd.
    static func serve(_ kind: String, _ path: String) {
        let set: (Int) -> Void
        if kind == "store" {
            let store = RecordStore(entries: 0, at: URL(fileURLWithPath: path))
            set = { key in attempt { try store.cache.setValue(Record(key), forKey: key) } }
        } else {
            let raw = RawSQLite(path)
            let encoder = CBOREncoder()
            set = { key in raw.set(key, attempt { try encoder.encode(Record(key)) }) }
        }
        var key = 1
        FileHandle.standardOutput.write(Data([1]))
        while FileHandle.standardInput.readData(ofLength: 1).count == 1 {
            for _ in 0..<count {
                set(key)
                key += 2
            }
            FileHandle.standardOutput.write(Data([1]))
        }
    }
}
