import Foundation
import Larder
import LarderStore
import LarderTestSupport
import Testing

/// Removals by tag, predicate or trim, seen from memory and from loads.
struct RemovedRowsTests {
    private let place: TemporaryStore
    private let manager: CacheManager

    init() throws { (place, manager) = try TemporaryStore.opened() }

    /// A key that a test holds up while it is decoded.
    struct SlowKey: Codable, Hashable, Sendable {
        static let gate = Locked<(begun: LoadGate, end: LoadGate)?>(nil)
        let number: Int

        init(_ number: Int) { self.number = number }

        init(from decoder: any Decoder) throws {
            if let gate = Self.gate.value {
                gate.begun.open()
                try gate.end.wait()
            }
            number = try decoder.singleValueContainer().decode(Int.self)
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(number)
        }
    }

    enum Removal: CaseIterable {
        case tag, tagOfAll, predicate, metadata, trim

        func remove(from cache: Cache<SlowKey, Int>) throws {
            switch self {
            case .tag: try cache.removeAll(tagged: "t")
            case .tagOfAll: try cache.manager.removeAll(tagged: "t")
            case .predicate: try cache.removeAll { $0.value < 10 }
            case .metadata: try cache.removeAll(whereMetadata: { _, metadata in metadata.size < 100 })
            case .trim: try cache.trim(toCount: 0)
            }
        }
    }

    // One after the other: the keys of all cases have one gate.
    @Test(.serialized, arguments: [Removal.tag, .tagOfAll, .trim])
    func `once a removal has returned memory serves nothing of it, whichever thread is still removing`(
        removal: Removal
    ) throws {
        let cache: Cache<SlowKey, Int> = try manager.cache(
            named: "a", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
        let other: Cache<Int, Int> = try manager.cache(
            named: "b", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
        other[1] = 1
        for key in 0..<20 { try cache.setValue(key, forKey: SlowKey(key), tags: ["t"]) }
        for key in 0..<20 { #expect(cache[SlowKey(key)] == key) }
        let (begun, end) = (LoadGate(), LoadGate())
        SlowKey.gate.change { $0 = (begun, end) }
        let first = SideThread { try removal.remove(from: cache) }
        try begun.wait()
        SlowKey.gate.change { $0 = nil }
        // The rows are removed, and the other thread decodes their keys.
        try removal.remove(from: cache)
        for key in 0..<20 {
            #expect(cache.memory[SlowKey(key)] == nil && !cache.memory.contains(SlowKey(key)))
            #expect(try cache[SlowKey(key)] == nil && !cache.contains(SlowKey(key)))
            #expect(try cache.values(forKeys: [SlowKey(key)]).isEmpty)
        }
        #expect(Array(cache.memory).isEmpty)
        // A new value is served, and other caches are not concerned.
        cache[SlowKey(1)] = 100
        #expect(cache[SlowKey(1)] == 100 && other.memory[1] == 1)
        end.open()
        try first.value()
        #expect(cache[SlowKey(1)] == 100 && cache.memory[SlowKey(1)] == 100)
        try expectInvariants(cache)
    }

    @Test(arguments: [false, true])
    func `a load that runs while its tag is removed stores nothing`(isOfAll: Bool) async throws {
        let cache: Cache<Int, String> = try await manager.cache(named: "a", version: "1", maxAge: .hours(1))
        let (begun, end) = (LoadGate(), LoadGate())
        let loaded = Task {
            try await cache.value(forKey: 1) { _, _ -> Generated<String> in
                begun.open()
                try await end.waitInTask()
                return .value("old", tags: ["author"])
            }
        }
        let kept = Task {
            try await cache.value(forKey: 2) { _, _ -> Generated<String> in
                try await end.waitInTask()
                return .value("other", tags: ["another"])
            }
        }
        try await begun.waitInTask()
        // No row has the tag yet.
        if isOfAll {
            try await manager.removeAll(tagged: "author")
        } else {
            try await cache.removeAll(tagged: "author")
        }
        end.open()
        // The callers get the value all the same.
        let values = try await (loaded.value, kept.value)
        #expect(values == ("old", "other"))
        #expect(cache[1] == nil && cache[2] == "other")
        let next = try await cache.value(forKey: 1) { _, _ -> Generated<String> in .value("new", tags: ["author"]) }
        #expect(next == "new" && cache[1] == "new")
    }

    @Test func `no thread reads a new value from the disk and then an old one from memory`() throws {
        let cache: Cache<Int, Int> = try manager.cache(named: "a", version: "1", maxAge: .hours(1))
        let keys = 0..<2000
        try cache.setValues(keys.map { ($0, 0) })
        let isDone = Locked(false)
        let reader = SideThread {
            while !isDone.value {
                let key = Int.random(in: keys)
                guard let first = try cache.entry(forKey: key)?.value, let second = cache[key] else { continue }
                if second < first { Issue.record("\(second) after \(first)") }
            }
        }
        defer { isDone.change { $0 = true } }
        for round in 1...40 { try cache.setValues(keys.map { ($0, round) }) }
        isDone.change { $0 = true }
        try reader.value()
    }

    @Test func `two versions that are opened at once end the streams of the one that is superseded`() async throws {
        for round in 0..<40 {
            let handles = Told<Cache<Int, Int>>()
            let versions = ["\(round) a", "\(round) b"]
            let (manager, name) = (manager, "raced \(round)")
            try await onThread {
                let threads = versions.map { version in
                    SideThread {
                        handles.add(
                            try manager.cache(named: name, version: .custom(version), maxAge: .hours(1)))
                    }
                }
                for thread in threads { try thread.value() }
            }
            let live = try #require(handles.all.first { (try? $0.setValue(1, forKey: 1)) != nil })
            let stream = live.changes(every: .zero)
            live[2] = 2
            var iterator = stream.makeAsyncIterator()
            let batch = await iterator.next()
            #expect(batch?.updated == [2: 2], "round \(round)")
        }
    }

    @Test func `caches that were opened and released leave nothing in the store`() throws {
        let before = manager.store.openNames
        for number in 0..<50 {
            let cache: Cache<Int, Int> = try manager.cache(named: "\(number)", version: "1", maxAge: .hours(1))
            cache[1] = 1
        }
        #expect(manager.store.openNames == before)
    }
}
