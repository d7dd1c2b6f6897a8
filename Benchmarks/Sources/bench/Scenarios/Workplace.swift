import Foundation
import Larder
import Synchronization

/// A value that comes to about 300 bytes.
struct Record: Codable, Sendable {
    var id: Int
    var title: String
    var text: String

    /// - Parameter edition: Makes it differ from an older one: SQLite does not write bytes over themselves.
    init(_ id: Int, edition: Int = 0) {
        self.id = id
        title = "record \(id) in edition \(1_000_000 + edition)"
        text = String(repeating: "abcdefghij", count: 26)
    }
}

/// A folder for the files of one scenario, gone with the process.
enum Workplace {
    static let folder: URL = {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent(
            "larder-bench-\(getpid())", isDirectory: true)
        atexit {
            // A store that is open may write into it in between.
            var attempts = 3
            while attempts > 0, FileManager.default.fileExists(atPath: Workplace.folder.path) {
                attempts -= 1
                do { try FileManager.default.removeItem(at: Workplace.folder) } catch {
                    if attempts == 0 { print(error) }
                }
            }
        }
        attempt { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }
        return url
    }()

    nonisolated(unsafe) private static var count = 0

    /// A path that nobody used before.
    static func path() -> URL {
        count += 1
        return folder.appendingPathComponent("\(count).sqlite")
    }
}

/// A benchmark has no use for a failure but to stop.
@discardableResult
func attempt<R>(_ body: () throws -> R) -> R {
    do { return try body() } catch { preconditionFailure("\(error)") }
}

/// The key of a number, of keys that come in no order.
///
/// Rows in the order of their keys would be inserted at the end of the index and found side by side.
func scattered(_ number: Int) -> Int {
    var generator = SeededGenerator(seed: UInt64(bitPattern: Int64(number)))
    return Int(truncatingIfNeeded: generator.next() >> 1)
}

/// A store with one cache of records.
struct RecordStore {
    let manager: CacheManager
    let cache: Cache<Int, Record>

    init(
        entries: Int, memory: MemoryLimits = .disabled, maxAge: MaxAge = .days(7), disk: DiskLimits = DiskLimits(),
        configuration: CacheManager.Configuration = .init(), at url: URL = Workplace.path(),
        keys: (Int) -> Int = { $0 }
    ) {
        manager = attempt { try CacheManager(url: url, configuration: configuration) }
        cache = attempt { [manager] in
            try manager.cache(
                named: "records", version: "1", maxAge: maxAge, options: CacheOptions(memory: memory, disk: disk))
        }
        for start in stride(from: 0, to: entries, by: 10_000) {
            attempt { [cache] in
                try cache.setValues((start..<min(start + 10_000, entries)).map { (keys($0), Record($0)) })
            }
        }
        attempt { [manager] in try manager.flush() }
    }
}

/// The yardstick's table with the same records.
func rawRecords(entries: Int, keys: (Int) -> Int = { $0 }) -> RawSQLite {
    let raw = RawSQLite(Workplace.path().path)
    let encoder = CBOREncoder()
    for start in stride(from: 0, to: entries, by: 10_000) {
        raw.transaction {
            for id in start..<min(start + 10_000, entries) {
                raw.set(keys(id), attempt { try encoder.encode(Record(id)) })
            }
        }
    }
    return raw
}

/// Bytes that need no decoding, so that a read is nothing but a read.
func blob(_ key: Int) -> Data { Data(repeating: UInt8(truncatingIfNeeded: key), count: 300) }

/// Bytes that differ from those of another edition, all of them: SQLite does not write a page over itself.
func blob(size: Int, edition: Int) -> Data {
    var data = Data(repeating: UInt8(truncatingIfNeeded: edition), count: size)
    withUnsafeBytes(of: edition) { data.replaceSubrange(0..<8, with: $0) }
    return data
}

/// A store with one cache of blobs of 300 bytes.
struct BlobStore {
    let manager: CacheManager
    let cache: Cache<Int, Data>

    init(
        entries: Int, memory: MemoryLimits = .disabled, configuration: CacheManager.Configuration = .init(),
        keys: (Int) -> Int = { $0 }
    ) {
        manager = attempt { try CacheManager(url: Workplace.path(), configuration: configuration) }
        cache = attempt { [manager] in
            try manager.cache(named: "blobs", version: "1", maxAge: .days(7), options: CacheOptions(memory: memory))
        }
        for start in stride(from: 0, to: entries, by: 10_000) {
            attempt { [cache] in
                try cache.setValues((start..<min(start + 10_000, entries)).map { (keys($0), blob($0)) })
            }
        }
        attempt { [manager] in try manager.flush() }
    }
}

/// The yardstick's table with the same blobs.
func rawBlobs(entries: Int, keys: (Int) -> Int = { $0 }) -> RawSQLite {
    let raw = RawSQLite(Workplace.path().path)
    for start in stride(from: 0, to: entries, by: 10_000) {
        raw.transaction { for key in start..<min(start + 10_000, entries) { raw.set(keys(key), blob(key)) } }
    }
    return raw
}

/// A clock that stands until it is moved.
final class Clock: Sendable {
    private let time = Mutex(Date(timeIntervalSinceReferenceDate: 800_000_000))

    var now: Date { time.withLock(\.self) }

    func advance(by seconds: Double) { time.withLock { $0 += seconds } }
}
