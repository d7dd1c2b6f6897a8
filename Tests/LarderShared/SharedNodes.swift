import Foundation
import Larder
import LarderLocks
import LarderShared
import LarderTestSupport
import LarderTesting

/// A node of a tier in memory: a store, a cache in it, and the cache shared.
final class TestNode: Sendable {
    struct Broken: Error {}

    let store: TemporaryStore
    let tier: GatedTier
    let manager: CacheManager
    let cache: Cache<String, String>
    let shared: SharedCache<String, String>

    static let options = SharedOptions(
        leaseAge: .seconds(60), loadWaitLimit: .seconds(120), catchUpLimit: .seconds(120), waits: true)

    init(
        _ tier: MemorySharedTier, on store: TemporaryStore? = nil, version: CacheVersion = "1",
        maxAge: MaxAge = .days(1),
        options: SharedOptions = TestNode.options
    ) async throws {
        self.store = try store ?? TemporaryStore()
        self.tier = GatedTier(tier)
        manager = try self.store.manager()
        cache = try await manager.cache(named: "texts", version: version, maxAge: maxAge)
        shared = try await cache.shared(through: self.tier, options: options)
    }

    /// Closes what a process that is killed would leave, without the last position.
    func kill() throws { try manager.close() }

    func get(_ key: String) async throws -> String? { try await shared.value(forKey: key) }

    /// The value in the tier.
    func inTier(_ key: String) async throws -> String? {
        let space = SharedSpace("texts/\(cache.version)/\(ValueCodec<String>.standard.identifier)")
        guard case .entry(let entry) = try await tier.inner.fetch(Data("t\(key)".utf8), in: space, lease: nil) else {
            return nil
        }
        return try CBORDecoder().decode(String.self, from: entry.payload)
    }

    func removeEverything() throws { try manager.removeAll() }

    var isEmpty: Bool { cache.first { _ in true } == nil }

    /// What the store has beside the entries.
    func notes() throws -> [Int64: String] { try StoreProbe(manager).notes(ofCache: "texts") }

    /// Waits until this node has taken in all messages that there are.
    func catchUp() async throws {
        // A message about a copy that is here alone comes behind all that were sent.
        let (marker, name) = (MemorySharedTier(joining: tier.inner), "marker \(UUID().uuidString)")
        let space = SharedSpace("texts/\(cache.version)/\(ValueCodec<String>.standard.identifier)")
        _ = try await cache.value(forKey: name) { _ in "" }
        try await marker.remove([.key(Data("t\(name)".utf8))], in: space)
        try await Waiting.until { self.cache[name] == nil }
    }
}

extension MemorySharedTier {
    /// Returns nodes of one tier, on one clock.
    static func nodes(_ count: Int, messageLimit: Int = 10_000, _ clock: ManualClock = ManualClock())
        -> [MemorySharedTier]
    {
        let first = MemorySharedTier(messageLimit: messageLimit) { clock.now }
        return [first] + (1..<max(1, count)).map { _ in MemorySharedTier(joining: first) }
    }
}

/// A tier whose calls a test holds up, repeats or lets fail.
final class GatedTier: SharedTier {
    enum Call: Hashable {
        case fetch, store, renew, remove, discard, changes
    }

    struct Fault: Error {}

    typealias Step = @Sendable () async throws -> Void

    let inner: MemorySharedTier
    private let steps = Mutex<(before: [Call: Step], after: [Call: Step])>(([:], [:]))
    private let counts = Mutex<[Call: Int]>([:])

    init(_ inner: MemorySharedTier) { self.inner = inner }

    /// Runs a step in front of each call of a kind; what it throws is what the call throws.
    func before(_ call: Call, _ step: Step?) { steps.withLock { $0.before[call] = step } }

    /// Runs a step behind each call of a kind, which the tier has done; what it throws is what the call throws.
    func after(_ call: Call, _ step: Step?) { steps.withLock { $0.after[call] = step } }

    func count(of call: Call) -> Int { counts.withLock { $0[call] ?? 0 } }

    var isAvailable: Bool { inner.isAvailable }

    private func run<R>(_ call: Call, _ body: () async throws -> R) async throws -> R {
        counts.withLock { $0[call, default: 0] += 1 }
        try await steps.withLock { $0.before[call] }?()
        let result = try await body()
        try await steps.withLock { $0.after[call] }?()
        return result
    }

    func fetch(_ key: Data, in space: SharedSpace, lease: Duration?) async throws -> SharedFetch {
        try await run(.fetch) { try await inner.fetch(key, in: space, lease: lease) }
    }

    func store(
        _ entry: SharedEntry, forKey key: Data, in space: SharedSpace, lease: SharedLease?
    ) async throws -> Bool {
        try await run(.store) { try await inner.store(entry, forKey: key, in: space, lease: lease) }
    }

    func renew(_ lease: SharedLease, forKey key: Data, in space: SharedSpace, age: Duration?) async throws {
        try await run(.renew) { try await inner.renew(lease, forKey: key, in: space, age: age) }
    }

    func remove(_ removals: [SharedRemoval], in space: SharedSpace) async throws {
        try await run(.remove) { try await inner.remove(removals, in: space) }
    }

    func discard(_ entry: SharedEntry, forKey key: Data, in space: SharedSpace) async throws {
        try await run(.discard) { try await inner.discard(entry, forKey: key, in: space) }
    }

    func changes(in space: SharedSpace, after position: String?) async throws -> SharedChanges {
        try await run(.changes) { try await inner.changes(in: space, after: position) }
    }
}
