import Foundation
import Larder
import LarderTestSupport
import Testing

/// One key that is made in several processes at once.
struct GenerationProcessTests {
    private let folder: TemporaryFolder
    private let manager: CacheManager
    private let cache: Cache<Int, Data>
    private let other: ChildProcess

    init() throws {
        folder = try TemporaryFolder()
        manager = try CacheManager(url: folder("store.sqlite"), configuration: .patient)
        cache = try manager.cache(
            named: "made", version: "1", maxAge: .unlimited, options: CacheOptions(inlineLimit: 1000))
        other = try ChildProcess("larder-test-cache", ["generate", folder("store.sqlite").path, "2"])
    }

    @Test(arguments: [false, true])
    func `what is made first after another process has cleared is stored`(isBlocking: Bool) async throws {
        let peer = try ChildProcess("larder-test-peer", [folder("store.sqlite").path, "1"])
        let shared: Cache<String, Data> = try await manager.cache(named: "shared", version: "1", maxAge: .unlimited)
        try await shared.setValue(Data([1]), forKey: "old")
        #expect(try peer.ask("count") == "1")
        #expect(try peer.ask("clear") == "ok")
        let made =
            try isBlocking
            ? await onThread { try shared.value(forKey: "new") { _ in Data([2]) } }
            : await shared.value(forKey: "new") { _ in Data([2]) }
        #expect(made == Data([2]))
        #expect(try await shared.value(forKey: "new") == Data([2]))
        #expect(try await shared.value(forKey: "old") == nil)
    }

    enum Order: CaseIterable { case oursFirst, theirsFirst, together }

    /// What the other process says of an entry of one maker.
    private func words(_ size: Int, _ mark: Int) -> String { "\(size) [\(mark)] \(mark)" }

    @Test(.enabled(if: LongTests.areEnabled, "a long test"), arguments: [10, 5000], Order.allCases)
    func `one key made in two processes at once: the later result stands, whole, and each has its own`(
        size: Int, order: Order
    ) async throws {
        let rounds = order == .together ? 20 : 3
        for key in 0..<rounds {
            let gate = LoadGate()
            let making = Counter()
            try other.tell("\(key) \(size)")
            let cache = cache
            async let made = cache.entry(forKey: key) { _, _ in
                making.increment()
                try await gate.pass()
                return .value(Data(repeating: 1, count: size), extendedData: Data([1]))
            }
            // Both are at it.
            #expect(other.line() == "making")
            try await Waiting.until { making.value == 1 }
            if order != .theirsFirst { gate.open() }
            if order == .oursFirst { _ = try await made }
            try other.goOn()
            #expect(other.line() == words(size, 2))
            gate.open()
            let ours = try await made
            #expect(ours.value == Data(repeating: 1, count: size) && ours.extendedData == Data([1]))
            let stored = try #require(try await cache.entry(forKey: key))
            let mark = stored.extendedData?.first ?? 0
            #expect(stored.value == Data(repeating: mark, count: size))
            #expect(stored.extendedData == Data(repeating: mark, count: Int(mark)))
            if order == .oursFirst { #expect(mark == 2) }
            if order == .theirsFirst { #expect(mark == 1) }
            #expect(try await cache.value(forKey: key) == stored.value)
            #expect(try other.ask("\(key)") == words(size, Int(mark)))
        }
        #expect(try cache.count == rounds)
        #expect(try await manager.verify().isHealthy)
        let files = try folder.contents().count {
            $0.key.hasPrefix("store.files/") && $0.value != nil && !$0.key.contains("/pool-")
        }
        #expect(files == (size > 1000 ? rounds : 0))
        #expect(try other.finish().status == 0)
    }
}
