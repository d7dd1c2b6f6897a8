#if LARDER_TSAN
public import LarderTSan
#else
public import Synchronization
#endif

/// A named sub-cache of a store: a dictionary that survives.
///
/// ```swift
/// let articles: Cache<Int, Article> = try manager.cache(named: "articles", version: "3", maxAge: .days(7))
/// articles[42] = article
/// for (id, article) in articles { … }
/// ```
///
/// It may be used from any thread. Values are kept on disk, and the most recently used ones in memory as well; both
/// tiers always agree. Several handles on one sub-cache share everything but their maximum age, the closures of their
/// codec, and the options `inlineLimit`, `undecodable` and `fileName`.
///
/// Two keys are one if their encodings are, so a key encodes precisely what its `==` compares. Where it encodes less, memory,
/// which goes by `==`, may serve what was written under the one key after the other was written.
///
/// **What runs where.** Codecs, clocks and closures are called, and values released, while no lock is held. There are
/// three exceptions: the body of `update(_:_:)` holds its key, that of a transaction the writing side of the store, and
/// a key's own `==` runs under the lock of the memory tier, and its `hash` too under those of generations and of observers;
/// neither may call the cache.
public final class Cache<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let core: SubCache<Key, Value>
    @usableFromInline let terms: CacheTerms<Value>

    /// The manager that opened it.
    public let manager: CacheManager

    /// How long this handle serves an entry after it was written.
    public let maxAge: MaxAge

    /// What the ledger knows it by.
    private let handle: Int

    var ledger: RowLedger { core.ledger }

    init(
        _ core: SubCache<Key, Value>, handle: Int, _ terms: CacheTerms<Value>, _ maxAge: MaxAge, _ manager: CacheManager
    ) {
        self.core = core
        self.handle = handle
        self.terms = terms
        self.maxAge = maxAge
        self.manager = manager
    }

    deinit {
        core.ledger.detach(handle)
    }

    /// The name under which it was opened.
    public var name: String { core.name }

    /// The version under which it was opened.
    public var version: CacheVersion { .custom(ledger.version) }

    /// The value of a key; setting nil removes it.
    ///
    /// Setting a value resets the own age, cost, extended data and tags of the entry, and keeps its pin.
    ///
    /// A read that fails gives nil, and a value that cannot be written is not stored. On a full disk entries may have
    /// been evicted before that, see ``CacheOptions/onFullDisk``. A failure goes to the log, the events and
    /// ``statistics``. The throwing twins say what went wrong.
    @inlinable
    public subscript(key: Key) -> Value? {
        get {
            if let value = hit(key) { return value }
            return reported(key)
        }
        set { report(setting: newValue, forKey: key) }
    }

    /// The value of a key, or the default if there is none; as a dictionary's.
    ///
    /// Reading and writing are two steps, so `cache[key, default: 0] += 1` is not atomic: use `update(_:_:)`.
    @inlinable
    public subscript(key: Key, default value: @autoclosure () -> Value) -> Value {
        get { self[key] ?? value() }
        set { self[key] = newValue }
    }

    /// Reads the value of a key; nil if there is no usable value now.
    ///
    /// A value in memory costs no system call.
    @inlinable
    public func value(forKey key: Key) throws(CacheError) -> Value? {
        if let value = hit(key) { return value }
        return try valueTheLongWay(forKey: key)
    }

    /// The value in memory, where one look is enough.
    @inlinable @inline(__always)
    func hit(_ key: Key) -> Value? {
        if manager.isClosed || !core.mayHoldCopies { return nil }
        let hash = core.seed.hash(key)
        let (rule, moment) = (terms.rule, terms.injectedNow())
        return core.front.withLock { $0.hit(key, hash: hash, rule: rule, moment: moment) }
    }

    @inlinable
    func valueTheLongWay(forKey key: Key) throws(CacheError) -> Value? {
        if manager.isClosed || core.mayHoldCopies { return try valueOfEitherTier(forKey: key) }
        return try core.findAlone(key, terms)
    }

    @usableFromInline
    func valueOfEitherTier(forKey key: Key) throws(CacheError) -> Value? {
        _ = try manager.store()
        switch try core.find(key, terms) {
        case .value(let value): return value
        case .nothing: return nil
        case .failure(let error): throw error
        }
    }

    @inlinable
    func reported(_ key: Key) -> Value? {
        do throws(CacheError) {
            return try valueTheLongWay(forKey: key)
        } catch {
            report(error, "read", key)
            return nil
        }
    }

    @inlinable
    func report(setting value: Value?, forKey key: Key) {
        do throws(CacheError) {
            try setValue(value, forKey: key)
        } catch {
            report(error, "write", key)
        }
    }

    /// Tells everyone of a failure that the call could not throw.
    @usableFromInline
    func report(_ error: CacheError, _ verb: String, _ key: Key? = nil) {
        // What does not decode was reported and counted when it was met.
        if error.code == .undecodable { return }
        ledger.count { $0.failures += 1 }
        core.report(
            verb == "read" ? .readFailed : .writeFailed, key: key.flatMap { core.storedIfAny($0) },
            "Cache \"\(name)\" could not \(verb): \(error.message)", .error, error: error)
    }
}
