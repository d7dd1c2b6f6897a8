internal import Foundation
public import LarderLocks
public import LarderStore

/// A named cache of a store: a dictionary that survives.
///
/// ```swift
/// let articles: Cache<Int, Article> = try manager.cache(named: "articles", version: "3", maxAge: .days(7))
/// articles[42] = article
/// for (id, article) in articles { … }
/// ```
///
/// It stays on this machine: with `shared(through:)` several machines have one cache, and until that is closed, writes and removals
/// through this handle are refused.
///
/// It may be used from any thread. Values are kept on disk, and the most recently used ones in memory as well. The handles
/// on one cache share everything but their codecs' closures, their rules of attributes, and the options `inlineLimit`, `accessGrain`,
/// `undecodable`, `onFullDisk` and `fileName`.
///
/// Two keys are one if their encodings are, so a key encodes precisely what its `==` compares. If it encodes less, memory,
/// which compares by `==`, may serve what was written under one key after the other was written.
///
/// **What runs where.** Codecs, clocks and closures are called, and values released, while no lock is held. There are two
/// exceptions: the bodies of `update(_:_:)` and `transaction(_:)` hold the writer of the store, and a key's own `==` runs
/// under the lock of the memory tier and may not call the cache.
public final class Cache<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let core: CacheCore<Key, Value>
    /// Those of `core`, one step nearer for a hit.
    @usableFromInline let copies: TierStorage<Key, Value>
    @usableFromInline let rows: CacheRows
    @usableFromInline let codec: ValueCodec<Value>
    private let failures = RepeatedFailures()
    /// The attributes of values that are written, but for what a call gives itself.
    @usableFromInline let rule: (@Sendable (Key, Value) -> EntryAttributes)?
    let undecodable: UndecodablePolicy
    let fileName: (@Sendable (String) -> String)?
    /// A Boolean value that indicates whether this is the handle by which a shared cache keeps its copies.
    let keepsCopies: Bool

    /// The manager that opened the cache.
    public let manager: CacheManager

    /// The version under which the cache was opened.
    public let version: CacheVersion

    init(
        _ core: CacheCore<Key, Value>, _ rows: CacheRows, _ version: CacheVersion, _ codec: ValueCodec<Value>,
        _ rule: (@Sendable (Key, Value) -> EntryAttributes)?, _ options: CacheOptions, _ manager: CacheManager
    ) {
        self.rule = rule
        (self.core, copies, self.rows, self.version, self.codec) = (core, core.copies, rows, version, codec)
        (undecodable, fileName, self.manager) = (options.undecodable, options.fileName, manager)
        keepsCopies = false
    }

    /// Creates the handle by which a shared cache keeps its copies.
    init(forCopiesOf cache: Cache) {
        (core, copies, rows, version) = (cache.core, cache.copies, cache.rows, cache.version)
        rule = cache.rule
        (codec, undecodable, fileName, manager) = (cache.codec, cache.undecodable, cache.fileName, cache.manager)
        keepsCopies = true
    }

    /// The name under which the cache was opened.
    public var name: String { rows.declaration.name }

    /// The maximum age of entries without one of their own; the latest open of the cache sets it.
    public var maxAge: MaxAge { core.current.maxAge }

    /// The value of a key; setting nil removes it.
    ///
    /// Setting a value resets the own age, cost, extended data and tags of the entry, and keeps its pin.
    ///
    /// A read that fails gives nil, and a value that cannot be written is not stored. On a full disk entries may have been
    /// evicted before that; see ``CacheOptions/onFullDisk``. A failure goes to the log, the events and ``statistics``.
    /// `value(forKey:)` and `setValue(_:forKey:)` throw it.
    @inlinable
    public subscript(key: Key) -> Value? {
        get {
            let hash = copies.seed.hash(key)
            var ticket: ReadTicket?
            return hit(key, hash, &ticket) ?? foundOrReported(key, hash, absentSince: ticket)
        }
        set { store(newValue, orReport: key) }
    }

    /// The value of a key, or a default if there is none.
    ///
    /// Reading and writing are two steps, so `cache[key, default: 0] += 1` is not atomic: use `update(_:_:)`.
    @inlinable
    public subscript(key: Key, default value: @autoclosure () -> Value) -> Value {
        get { self[key] ?? value() }
        set { self[key] = newValue }
    }

    /// Returns the value of a key; nil if there is none that may be served.
    ///
    /// A value in memory costs no system call.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``. `.undecodable` if the value is of another type.
    @inlinable
    public func value(forKey key: Key) throws(CacheError) -> Value? {
        let hash = copies.seed.hash(key)
        var ticket: ReadTicket?
        if let value = hit(key, hash, &ticket) { return value }
        return try find(key, hash, absentSince: ticket)
    }

    /// Returns the value of a key; nil if there is none that may be served.
    public func value(forKey key: Key) async throws(CacheError) -> Value? {
        let hash = copies.seed.hash(key)
        var ticket: ReadTicket?
        if let value = hit(key, hash, &ticket) { return value }
        return try await reading { [ticket] () throws(CacheError) in try self.find(key, hash, absentSince: ticket) }
    }

    /// The value in memory, if one look is enough to tell that it may be served.
    @inlinable @inline(__always)
    func hit(_ key: Key) -> Value? {
        var ticket: ReadTicket?
        return hit(key, copies.seed.hash(key), &ticket)
    }

    /// The value in memory, if one look is enough to tell that it may be served.
    ///
    /// - Parameter ticket: Set if memory has no copy: what a later read finds can be offered with it.
    @inlinable @inline(__always)
    func hit(_ key: Key, _ hash: UInt64, _ ticket: inout ReadTicket?) -> Value? {
        if copies.isOff.load(ordering: .relaxed) {
            ticket = .refused
            return nil
        }
        return copies.state.withLock { $0.hit(key, hash: hash, &ticket) }
    }

    @inlinable
    func foundOrReported(_ key: Key, _ hash: UInt64, absentSince ticket: ReadTicket?) -> Value? {
        do throws(CacheError) {
            return try find(key, hash, absentSince: ticket)
        } catch {
            report(error, .readFailed, key)
            return nil
        }
    }

    @inlinable
    func store(_ value: Value?, orReport key: Key) {
        do throws(CacheError) {
            try setValue(value, forKey: key)
        } catch {
            report(error, .writeFailed, key)
        }
    }

    /// Reports a failure that a call could not throw.
    @usableFromInline
    func report(_ error: CacheError, _ kind: CacheEvent.Kind, _ key: Key? = nil) {
        // An undecodable value was reported as that.
        if error.code == .undecodable { return }
        copies.count { $0.failures += 1 }
        reportUnthrown(
            error, CacheEvent(kind, cacheName: name, key: key.flatMap { storedName(of: $0) }, message: error.message))
    }

    /// Sends an event for a failure that no call can throw, and writes to the log unless it has the same already.
    func reportUnthrown(_ error: CacheError, _ event: CacheEvent) {
        if !manager.reports(error) { return }
        let text = failures.text(for: error, event.message)
        manager.reporter.report(event, .error, error: error, text: text)
    }

    func storedName(of key: Key) -> String? {
        do throws(CacheError) { return try stored(key).name } catch { return nil }
    }

    @inlinable
    func stored(_ key: Key) throws(CacheError) -> StoredKey { try core.keyCodec.stored(key, cache: name) }

    /// Throws while the cache is shared with other nodes, which a write or removal of this handle would not reach.
    @usableFromInline
    func requireUnshared(_ action: String) throws(CacheError) {
        if keepsCopies || !core.isShared.load(ordering: .relaxed) { return }
        throw CacheError(
            .invalidConfiguration,
            "Cache \"\(name)\" could not \(action): it is shared, and this handle does not reach the other nodes. Use the shared handle,"
                + " or close that.")
    }

    /// Runs a call of the store, and gives its failure the names of the cache and the key.
    func throwing<R>(
        _ action: String, _ key: StoredKey? = nil, _ body: () throws(StoreError) -> R
    ) throws(CacheError) -> R {
        try rows.throwing(action, key, body)
    }
}

extension Cache: CustomStringConvertible {
    /// The name, the version, the number of entries in memory, and the file.
    ///
    /// The entries on disk are not counted for it.
    public var description: String {
        let count = memory.count
        return
            "Cache(\"\(name)\", version \"\(version)\", \(count) \(count == 1 ? "entry" : "entries") in memory, \(manager.place))"
    }
}
