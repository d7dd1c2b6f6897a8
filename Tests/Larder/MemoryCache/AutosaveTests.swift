import Foundation
import Larder
import LarderTestSupport
import Testing

/// Snapshots that are written in the background.
struct AutosaveTests {
    private let time = ManualClock()
    private let folder: TemporaryFolder
    private var file: URL { folder("snapshot") }

    init() throws { folder = try TemporaryFolder() }

    private func cache() -> MemoryCache<String, Int> { .inTime(time) }

    /// The entries of the file.
    private func saved() throws -> [String: Int] {
        try MemoryCache<String, Int>(restoring: file, clearsOnMemoryPressure: false).snapshot()
    }

    @Test func `what has changed is saved after an interval, and nothing while nothing changes`() async throws {
        let cache = cache()
        cache["a"] = 1
        let task = await cache.autosave(to: file, every: .seconds(5))
        cache["b"] = 2
        time.advance(by: .seconds(4))
        #expect(try folder.names.isEmpty)
        time.advance(by: .seconds(1))
        try await Waiting.until { try saved() == ["a": 1, "b": 2] }
        #expect(time.pendingCount == 0)
        cache["a"] = nil
        time.advance(by: .seconds(5))
        try await Waiting.until { try saved() == ["b": 2] }
        cache.removeAll()
        time.advance(by: .seconds(5))
        try await Waiting.until { try saved() == [:] }
        withExtendedLifetime(task) {}
    }

    @Test func `a program that ends saves at once`() throws {
        let cache = cache()
        let task = cache.autosave(to: file, every: .seconds(5))
        cache["a"] = 1
        try task.saveNow()
        #expect(try saved() == ["a": 1])
    }

    @Test(arguments: [true, false]) func `a task that is cancelled or released saves no more`(isReleased: Bool)
        async throws
    {
        let cache = cache()
        var task: AutosaveTask? = await cache.autosave(to: file, every: .seconds(5))
        cache["a"] = 1
        if isReleased { task = nil } else { task?.cancel() }
        cache["b"] = 2
        #expect(time.pendingCount == 0)
        time.advance(by: .seconds(5))
        #expect(try folder.names.isEmpty)
        withExtendedLifetime(task) {}
    }

    @Test func `an autosave that begins before a restore keeps the values of the file`() throws {
        let first = cache()
        first.setValues(["old": 1, "both": 1])
        try first.save(to: file)
        let cache = cache()
        cache["both"] = 2
        let task = cache.autosave(to: file, every: .seconds(5))
        cache["new"] = 3
        try task.saveNow()
        #expect(try saved() == ["old": 1, "both": 2, "new": 3] && cache["old"] == 1)
    }

    @Test func `what is there is saved, though nothing changes`() async throws {
        let cache = cache()
        cache["a"] = 1
        let task = await cache.autosave(to: file, every: .seconds(5))
        time.advance(by: .seconds(5))
        try await Waiting.until { try saved() == ["a": 1] }
        withExtendedLifetime(task) {}
    }

    @Test func `what the file adds displaces nothing`() throws {
        let first = cache()
        first.setValues([("c", 1), ("a", 1)])
        try first.save(to: file)
        let told = Told<String>()
        let cache = MemoryCache<String, Int>.inTime(time, countLimit: 2) { key, _, _ in told.add(key) }
        cache.setValues([("a", 2), ("b", 2)])
        try cache.autosave(to: file, every: .seconds(5)).saveNow()
        #expect(try saved() == ["a": 2, "b": 2] && told.all.isEmpty)
    }

    @Test func `a file that is named in another way is known`() throws {
        let cache = cache()
        cache["a"] = 1
        try cache.save(to: folder.real("snapshot"))
        cache["a"] = nil
        try cache.autosave(to: file, every: .seconds(5)).saveNow()
        #expect(try saved() == [:])
    }

    @Test func `an autosave after a restore brings back nothing that was removed`() throws {
        let first = cache()
        first.setValues(["a": 1, "b": 2])
        try first.save(to: file)
        let restored = try MemoryCache<String, Int>(restoring: file, clearsOnMemoryPressure: false)
        restored["a"] = nil
        try restored.autosave(to: file, every: .seconds(5)).saveNow()
        #expect(try saved() == ["b": 2])
        first["a"] = nil
        try first.autosave(to: file, every: .seconds(5)).saveNow()
        #expect(try saved() == ["b": 2])
    }

    /// What stands in the way of a snapshot.
    enum Obstacle: CaseIterable {
        case folder, text, otherKeys

        func put(at url: URL) throws {
            switch self {
            case .folder: try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
            case .text: try Data("my notes".utf8).write(to: url)
            case .otherKeys:
                let other = MemoryCache<Int, Int>(clearsOnMemoryPressure: false)
                other[1] = 1
                try other.save(to: url)
            }
        }

        var code: CacheError.Code {
            switch self {
            case .folder: .storageUnavailable
            case .text: .foreignFile
            case .otherKeys: .typeMismatch
            }
        }
    }

    @Test(arguments: Obstacle.allCases)
    func `what is no snapshot of these types is left alone, and saved once it is gone`(obstacle: Obstacle) async throws
    {
        try obstacle.put(at: file)
        let before = try folder.contents()
        let cache = cache()
        let task = await cache.autosave(to: file, every: .seconds(5))
        cache["a"] = 1
        let error = await #expect(throws: CacheError.self) { try await task.saveNow() }
        #expect(error?.code == obstacle.code && error?.message.contains("snapshot") == true)
        time.advance(by: .seconds(5))
        // It has failed once it waits for the next interval.
        try await Waiting.until { time.pendingCount == 1 }
        #expect(try folder.contents() == before && cache["a"] == 1)
        try FileManager.default.removeItem(at: file)
        time.advance(by: .seconds(5))
        try await Waiting.until { try saved() == ["a": 1] }
    }

    @Test func `a value that cannot be encoded is left out, and tried again with the next change alone`() async throws {
        let cache = MemoryCache<Int, Picky>.inTime(time)
        let task = await cache.autosave(to: file, every: .seconds(5))
        cache.setValues([1: Picky(isGood: true), 2: Picky(isGood: false)])
        await #expect(throws: CacheError.self) { try await task.saveNow() }
        #expect(try await MemoryCache<Int, Picky>(restoring: file, clearsOnMemoryPressure: false).count == 1)
        time.advance(by: .seconds(5))
        cache[2] = nil
        time.advance(by: .seconds(5))
        try await task.saveNow()
    }

    private struct Picky: Codable {
        let isGood: Bool

        init(isGood: Bool) { self.isGood = isGood }

        init(from decoder: any Decoder) throws { isGood = try decoder.singleValueContainer().decode(Bool.self) }

        func encode(to encoder: any Encoder) throws {
            if !isGood { throw CancellationError() }
            var container = encoder.singleValueContainer()
            try container.encode(isGood)
        }
    }

    @Test func `tasks restore, begin and end saves without a thread of the pool`() async throws {
        let file = folder("tasks.snapshot")
        let first = try await MemoryCache<String, Int>(restoring: file, clearsOnMemoryPressure: false)
        first["a"] = 1
        let task = await first.autosave(to: file, every: .seconds(3600))
        try await task.saveNow()
        let second = try await MemoryCache<String, Int>(restoring: file, clearsOnMemoryPressure: false)
        #expect(second["a"] == 1)
        task.cancel()
        try Data("text".utf8).write(to: file)
        await #expect(throws: CacheError.self) {
            _ = try await MemoryCache<String, Int>(restoring: file, clearsOnMemoryPressure: false)
        }
    }
}
