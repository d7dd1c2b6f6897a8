import Foundation
import Larder
import LarderTestSupport
import Testing

/// One key that is loaded in several processes at once.
struct GenerationProcessTests {
    private let folder: TemporaryFolder
    private let manager: CacheManager

    init() throws {
        folder = try TemporaryFolder()
        manager = try CacheManager(url: folder("store.sqlite"), configuration: .patient)
    }

    @Test(arguments: [false, true])
    func `a value that is loaded after another process has cleared the cache is stored`(
        isOnThread: Bool
    ) async throws {
        let peer = try ChildProcess("larder-test-peer", [folder("store.sqlite").path, "1"])
        let cache: Cache<String, Data> = try await manager.cache(named: "shared", version: "1", maxAge: .unlimited)
        try await cache.setValue(Data([1]), forKey: "old")
        #expect(try peer.ask("count") == "1")
        #expect(try peer.ask("clear") == "ok")
        let loaded =
            try isOnThread
            ? await onThread { try cache.value(forKey: "new") { _ in Data([2]) } }
            : await cache.value(forKey: "new") { _ in Data([2]) }
        #expect(loaded == Data([2]))
        #expect(try await cache.value(forKey: "new") == Data([2]))
        #expect(try await cache.value(forKey: "old") == nil)
        #expect(try peer.ask("get new") == "1 2")
        #expect(try peer.finish().status == 0)
    }

    enum Order: CaseIterable { case oursFirst, theirsFirst, together }

    /// Returns what the other process prints of an entry of one process.
    private func words(_ size: Int, _ mark: Int) -> String { "\(size) [\(mark)] \(mark)" }

    @Test(.enabled(if: LongTests.areEnabled, "a long test"), arguments: [10, 5000], Order.allCases)
    func `of one key that two processes load at once the later result stays, whole, and each caller has its own`(
        size: Int, order: Order
    ) async throws {
        let cache: Cache<Int, Data> = try await manager.cache(
            named: "made", version: "1", maxAge: .unlimited, options: CacheOptions(inlineLimit: 1000))
        let other = try ChildProcess("larder-test-cache", ["generate", folder("store.sqlite").path, "2"])
        let rounds = order == .together ? 20 : 3
        for key in 0..<rounds {
            let (begun, gate) = (LoadGate(), LoadGate())
            try other.tell("\(key) \(size)")
            async let loaded = cache.entry(forKey: key) { _, _ in
                begun.open()
                try await gate.waitInTask()
                return .value(Data(repeating: 1, count: size), extendedData: Data([1]))
            }
            #expect(other.line() == "loading")
            try await begun.waitInTask()
            if order != .theirsFirst { gate.open() }
            if order == .oursFirst { _ = try await loaded }
            try other.goOn()
            #expect(other.line() == words(size, 2))
            gate.open()
            let ours = try await loaded
            #expect(ours.value == Data(repeating: 1, count: size) && ours.extendedData == Data([1]))
            let stored = try #require(try await cache.entry(forKey: key))
            let mark = Int(stored.extendedData?.first ?? 0)
            #expect(stored.value == Data(repeating: UInt8(mark), count: size))
            #expect(stored.extendedData == Data(repeating: UInt8(mark), count: mark))
            #expect(order == .together ? [1, 2].contains(mark) : mark == (order == .oursFirst ? 2 : 1))
            #expect(try await cache.value(forKey: key) == stored.value)
            #expect(try other.ask("\(key)") == words(size, mark))
        }
        #expect(try cache.count == rounds)
        #expect(try await manager.verify().problems == [])
        #expect(try StoreProbe(manager).namedFiles().count == (size > 1000 ? rounds : 0))
        #expect(try StoreProbe(manager).fileProblems() == [])
        #expect(try other.finish().status == 0)
    }
}
