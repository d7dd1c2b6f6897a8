import Foundation
import Larder
import LarderTestSupport
import Testing

struct CacheUndecodableTests {
    private let place: TemporaryStore

    init() throws {
        place = try TemporaryStore(of: #fileID)
    }

    private struct Old: Codable, Equatable { var name: String }
    private struct New: Codable, Equatable { var name: String; var year: Int }

    private let logged = Told<LogMessage>()

    private func open(_ policy: UndecodablePolicy) throws -> (CacheManager, Cache<Int, New>) {
        do {
            let manager = try place.manager()
            let old: Cache<Int, Old> = try manager.cache(named: "a", version: "1", maxAge: .unlimited)
            for key in 1...3 { old[key] = Old(name: "\(key)") }
            try manager.close()
        }
        let logged = logged
        let manager = try place.manager { $0.log = { logged.add($0) } }
        let cache: Cache<Int, New> = try manager.cache(
            named: "a", version: "1", maxAge: .unlimited, options: CacheOptions(undecodable: policy).steady)
        return (manager, cache)
    }

    @Test(arguments: [UndecodablePolicy.drop, .keep])
    func `a value that no longer decodes is reported, and can be written again`(
        policy: UndecodablePolicy
    ) async throws {
        let events = try meetUndecodable(policy)
        var seen: Set<String> = []
        for await event in events { seen.insert("\(event.kind) \(event.key ?? "")") }
        #expect(seen == ["undecodable 1", "undecodable 2", "undecodable 3"])
    }

    /// Meets three of them through one call after another, and gives the events, which have ended.
    private func meetUndecodable(_ policy: UndecodablePolicy) throws -> AsyncStream<CacheEvent> {
        let (manager, cache) = try open(policy)
        let events = manager.events
        #expect(try cache.count == 3)
        #expect(try cache.contains(1))
        let error = expectError(.undecodable) { try cache.value(forKey: 1) }
        #expect(error?.message.contains("\"a\"") == true && error?.message.contains("1") == true)
        #expect(error?.underlying != nil)
        #expect(cache[2] == nil)
        #expect(try cache.values(forKeys: [3]) == [:])
        #expect(try cache.snapshot().isEmpty)
        #expect(cache.map(\.key) == [])
        cache[4] = New(name: "4", year: 4)
        // A value that did not decode is deleted with the next write or earlier, if the policy says so.
        try Waiting.until { try StoreProbe(manager).rows(ofCache: "a").count == (policy == .drop ? 1 : 4) }
        cache[1] = New(name: "1", year: 1)
        #expect(cache[1]?.year == 1)
        #expect(cache.map(\.key) == [1, 4])
        #expect(cache.statistics.failures >= 3)
        #expect(logged.all.count >= 3 && logged.all.allSatisfy { $0.error?.code == .undecodable })
        try manager.close()
        return events
    }

    @Test func `removing, updating and listing what does not decode`() throws {
        let (manager, cache) = try open(.drop)
        #expect(try cache.removeValue(forKey: 1) == nil)
        try cache.update(2) { value in
            #expect(value == nil)
            value = New(name: "2", year: 2)
        }
        #expect(cache.map(\.key) == [2])
        #expect(try cache.removeAll { _ in true } == 1)
        // What a call has met and could not decode goes soon after it.
        try Waiting.until { try StoreProbe(manager).rows(ofCache: "a").count == 0 }
    }

    /// Keys that are texts, but not any text.
    private enum Word: String, Codable { case one, three, four }

    @Test(arguments: [UndecodablePolicy.drop, .keep])
    func `a row whose key does not decode is treated in the same way`(policy: UndecodablePolicy) throws {
        let manager = try place.manager()
        let cache: Cache<Word, Int> = try manager.cache(
            named: "a", version: "1", maxAge: .unlimited, options: CacheOptions(undecodable: policy).steady)
        for key in [Word.one, .three] { cache[key] = 1 }
        let other: Cache<String, Int> = try place.manager().cache(named: "a", version: "1", maxAge: .unlimited)
        other["two"] = 2
        #expect(cache.map(\.key) == [.one, .three])
        #expect(try cache.snapshot().count == 2)
        #expect(cache.map(\.key) == [.one, .three])
        #expect(cache.statistics.failures >= 1)
        cache[.four] = 4
        try Waiting.until { try StoreProbe(manager).rows(ofCache: "a").count == (policy == .drop ? 3 : 4) }
        #expect(try cache.trim(toCount: 0) == (policy == .drop ? 3 : 4))
        #expect(try cache.isEmpty)
    }

    /// What is written over the row of key 2.
    private static let nonsense = [
        "size = 77", "size = -5", "payload = NULL", "payload = x''", "payload = zeroblob(100000)",
        "file = '../x', payload = NULL", "written_at = -9000000000000000", "written_at = 9000000000000000",
        "expires_at = -5", "revision = -1", "meta = x'07'", "meta = x'FF'", "checksum = 0",
    ]

    @Test(arguments: nonsense)
    func `a row with nonsense in it harms nobody`(change: String) throws {
        let manager = try place.manager()
        let cache: Cache<Int, String> = try manager.cache(named: "a", version: "1", maxAge: .days(1))
        for key in 1...3 { cache[key] = "\(key)" }
        for key in 1...3 { #expect(cache[key] == "\(key)") }
        var shell = try Intruder(place.url)
        try shell.execute("UPDATE OR IGNORE entry SET \(change) WHERE key = 2")
        #expect([nil, "2"].contains(cache[2]))
        #expect(cache[1] == "1" && cache[3] == "3")
        #expect(try cache.values(forKeys: [1, 3]) == [1: "1", 3: "3"])
        #expect(cache.map(\.key).filter { $0 != 2 } == [1, 3])
        _ = try cache.sizeOnDisk
        try manager.flush()
        cache[2] = "again"
        #expect(cache[2] == "again")
        // A write keeps a pin.
        try cache.setPinned(false, forKey: 2)
        #expect(try cache.trim(toCount: 0) == 3)
        #expect(try cache.isEmpty)
    }

    /// A key that can be written and never read.
    private struct OneWay: Codable, Hashable {
        let number: Int

        init(_ number: Int) { self.number = number }

        init(from decoder: any Decoder) throws {
            throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "never"))
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(number)
        }
    }

    @Test func `an entry whose key does not decode leaves memory with its row`() throws {
        let manager = try place.manager()
        let cache: Cache<OneWay, Int> = try manager.cache(
            named: "a", version: "1", maxAge: .unlimited, options: CacheOptions().steady)
        for number in 1...3 { cache[OneWay(number)] = number }
        #expect(cache[OneWay(1)] == 1 && cache.memory.count == 3)
        #expect(try cache.trim(toCount: 0) == 3)
        for number in 1...3 {
            #expect(try !cache.contains(OneWay(number)))
            #expect(try cache.value(forKey: OneWay(number)) == nil && cache[OneWay(number)] == nil)
        }
        #expect(cache.memory.count == 0)
        cache[OneWay(2)] = 5
        #expect(cache[OneWay(2)] == 5)
        #expect(try StoreProbe(manager).rows(ofCache: "a").count == 1)
    }
}
