import Foundation
import Larder
import LarderTestSupport
import Testing

/// Caches of one file in several processes.
struct CacheProcessesTests {
    private let folder: TemporaryFolder
    private let manager: CacheManager

    init() throws {
        folder = try TemporaryFolder()
        manager = try CacheManager(url: folder("store.sqlite"), configuration: .patient)
    }

    private func cache(_ version: CacheVersion = "1") throws -> Cache<String, Data> {
        try manager.cache(
            named: "shared", version: version, maxAge: .unlimited, options: CacheOptions(inlineLimit: 1000))
    }

    private func other(_ version: String = "1") throws -> ChildProcess {
        try ChildProcess("larder-test-peer", [folder("store.sqlite").path, version])
    }

    private func bytes(_ count: Int, _ byte: UInt8) -> Data { Data(repeating: byte, count: count) }

    @Test(arguments: [10, 5000])
    func `what another process has committed is what is read, from memory too`(size: Int) throws {
        let cache = try cache()
        let other = try other()
        cache["a"] = bytes(size, 1)
        #expect(try other.ask("get a") == "\(size) 1")
        for round in UInt8(2)..<100 {
            #expect(try other.ask("set a \(size) \(round)") == "ok")
            #expect(cache["a"] == bytes(size, round))
            cache["a"] = bytes(size, round &+ 100)
            #expect(try other.ask("get a") == "\(size) \(round &+ 100)")
        }
        #expect(try other.ask("remove a") == "ok")
        #expect(cache["a"] == nil)
        #expect(try cache.count == 0)
        cache["b"] = bytes(size, 1)
        #expect(try other.ask("count") == "1")
        #expect(try other.ask("clear") == "ok")
        #expect(cache["b"] == nil)
        cache["c"] = bytes(size, 1)
        #expect(try other.ask("get c") == "\(size) 1")
        #expect(try other.ask("count") == "1")
        #expect(try other.finish().status == 0)
    }

    @Test func `a stream reports what another process commits`() async throws {
        let cache = try cache()
        let other = try other()
        var changes = cache.changes().makeAsyncIterator()
        var values = cache.changes(forKey: "a").makeAsyncIterator()
        #expect(await values.next() == .some(nil))
        for round in UInt8(1)..<4 {
            #expect(try other.ask("set a 10 \(round)") == "ok")
            #expect(await values.next() == bytes(10, round))
            #expect(await changes.next()?.isReset == true)
        }
        #expect(try other.finish().status == 0)
    }

    @Test func `a version opened in another process supersedes the handles of this one`() throws {
        let cache = try cache()
        cache["a"] = bytes(10, 1)
        let other = try other("2")
        #expect(try other.ask("get a") == "nil")
        #expect(cache["a"] == nil)
        let error = #expect(throws: CacheError.self) { try cache.setValue(bytes(10, 2), forKey: "a") }
        #expect(error?.code == .superseded)
        #expect(try other.ask("set a 10 3") == "ok")
        #expect(cache["a"] == nil)
        #expect(try self.cache("2")["a"] == bytes(10, 3))
        #expect(try other.finish().status == 0)
    }

    @Test func `two processes write, and nothing is lost`() throws {
        let cache = try cache()
        let other = try other()
        for round in 0..<200 {
            let thread = Thread { [cache] in cache["here \(round)"] = Data([1]) }
            thread.start()
            #expect(try other.ask("set there-\(round) 1500 7") == "ok")
            try Waiting.until { thread.isFinished }
        }
        #expect(try cache.count == 400)
        #expect(try other.ask("count") == "400")
        #expect(cache.statistics.failures == 0)
        #expect(try manager.verify().isHealthy)
        #expect(try other.finish().status == 0)
    }

    private static let tellsMemory =
        FileManager.default.fileExists(atPath: "/proc/self/statm") && !ChildProcess.isSanitized

    /// Asks a process how much memory is resident, and before the first time fills its page caches, which stay full.
    private func memory(of other: ChildProcess, isFirst: Bool = false) throws -> Int {
        if isFirst {
            for question in ["get", "many"] {
                for key in 0..<20 {
                    #expect(try other.ask("set \(key) 1000000 1") == "ok")
                    #expect(try other.ask("\(question) \(key)") == "1000000 1")
                }
            }
            for key in 0..<20 { #expect(try other.ask("remove \(key)") == "ok") }
            for question in ["get a", "many a", "pass", "take a"] {
                #expect(try other.ask("set a 1000000 1") == "ok")
                #expect(try other.ask(question) == "1000000 1")
            }
        }
        return try #require(Int(try other.ask("memory")))
    }

    @Test(.enabled(if: tellsMemory, "the system does not say how much memory is resident, or a sanitizer keeps it"))
    func `a value of 50 MB comes and goes, and resident memory returns to its level`() throws {
        let other = try other()
        let before = try memory(of: other, isFirst: true)
        for round in 1...4 {
            #expect(try other.ask("set a 50000000 \(round)") == "ok")
            #expect(try other.ask("get a") == "50000000 \(round)")
        }
        #expect(try other.ask("remove a") == "ok")
        #expect(try other.ask("maintain") == "ok")
        let after = try memory(of: other)
        #expect(after - before < 20_000, "\(before) kB, then \(after) kB")
        #expect(try other.finish().status == 0)
    }

    @Test(.enabled(if: tellsMemory, "the system does not say how much memory is resident, or a sanitizer keeps it"))
    func `a row of 50 MB comes and goes, and no statement keeps it in memory`() throws {
        let other = try ChildProcess("larder-test-peer", [folder("store.sqlite").path, "1", "rows"])
        let before = try memory(of: other, isFirst: true)
        for (round, question) in ["get a", "many a", "pass", "take a"].enumerated() {
            #expect(try other.ask("set a 50000000 \(round)") == "ok")
            #expect(try other.ask(question) == "50000000 \(round)")
            let after = try memory(of: other)
            #expect(after - before < 20_000, "\(question): \(before) kB, then \(after) kB")
        }
        #expect(try other.ask("maintain") == "ok")
        #expect(try memory(of: other) - before < 20_000)
        #expect(try other.finish().status == 0)
    }
}
