public import LarderLocks
internal import LarderSQLite
public import LarderStore

/// Reports changes to every stream of one cache.
///
/// A change is noted under the writer's lock, in the order of the commits, so what it displaces is returned and released
/// after it: keys that a stream drops, and streams, which may be the last holders of a handle and of its manager.
@usableFromInline
package final class ChangeHub<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct State {
        var streams: [Int: ChangeStream<Key, Value>] = [:]
        /// The streams, to iterate without the lock.
        var list: [ChangeStream<Key, Value>] = []
        /// The streams of single keys.
        var ofKeys: [Key: [Int: ChangeStream<Key, Value>]] = [:]
        var lastID = 0
    }

    private let state = Mutex(State())
    @usableFromInline let observed = Atomic(false)

    /// Nil where there is no store.
    private let foreign: ForeignCommits?

    init(_ foreign: ForeignCommits?) { self.foreign = foreign }

    package convenience init() { self.init(nil) }

    deinit { foreign?.stop(ObjectIdentifier(self)) }

    /// A Boolean value that indicates whether there are streams; without any, a write costs only this load.
    @inlinable
    package var isObserved: Bool { observed.load(ordering: .acquiring) }

    // MARK: - Writers

    /// Notes that the keys have values, as one step.
    @usableFromInline
    package func noteUpdated(_ keys: some Collection<Key>, _ deferred: inout Deferred) {
        if isObserved { report(keys, .updated, &deferred) }
    }

    /// Notes that the entries of the keys were removed, as one step; pass only keys that had an entry.
    package func noteRemoved(_ keys: some Collection<Key>, _ deferred: inout Deferred) {
        if isObserved { report(keys, .removed, &deferred) }
    }

    /// Notes a clear, a purge, or a change that is not known: everything may have changed.
    package func noteReset(_ deferred: inout Deferred) {
        if !isObserved { return }
        let (list, ofKeys) = state.withLock { ($0.list, $0.ofKeys) }
        for stream in list + ofKeys.values.flatMap(\.values) {
            deferred.add(stream.noteReset())
            deferred.add(stream)
        }
        deferred.add(ofKeys)
    }

    /// Notes that other processes may have changed anything: streams look which of their keys were.
    package func noteForeign(_ deferred: inout Deferred) {
        if !isObserved { return }
        let (list, ofKeys) = state.withLock { ($0.list, $0.ofKeys) }
        for stream in list {
            deferred.add(stream.noteForeign())
            deferred.add(stream)
        }
        // They read the row, and send no version twice.
        for stream in ofKeys.values.flatMap(\.values) {
            deferred.add(stream.noteReset())
            deferred.add(stream)
        }
        deferred.add(ofKeys)
    }

    private func report(_ keys: some Collection<Key>, _ change: KeyChange, _ deferred: inout Deferred) {
        let (list, ofKeys) = state.withLock { ($0.list, $0.ofKeys) }
        for stream in list {
            deferred.add(stream.note(keys, change))
            deferred.add(stream)
        }
        if ofKeys.isEmpty { return }
        for key in keys {
            for stream in (ofKeys[key] ?? [:]).values {
                deferred.add(stream.note(key, change))
                deferred.add(stream)
            }
        }
        deferred.add(ofKeys)
    }

    // MARK: - Readers

    /// Returns a stream of the changes from now on, at most one batch in an interval.
    ///
    /// An interval of zero or less sends changes as soon as they are requested.
    ///
    /// - Parameters:
    ///   - begin: Called before each batch is waited for; if it returns false, the stream ends.
    ///   - foreign: Returns the keys that other processes have changed.
    ///   - read: Returns the values when a batch is taken; it runs under no lock and must not block.
    ///   - wasReset: Called before a reset is returned.
    package func changes(
        every interval: Duration, timekeeper: Timekeeper, begin: @escaping @Sendable () async -> Bool = { true },
        foreign: @escaping ChangeStream<Key, Value>.Foreign = { nil },
        read: @escaping ChangeStream<Key, Value>.Read, wasReset: @escaping @Sendable () -> Void = {}
    ) -> AsyncStream<CacheChanges<Key, Value>> {
        let stream = ChangeStream(every: interval, timekeeper: timekeeper, foreign: foreign, read: read)
        let subscription = subscribe(stream)
        return AsyncStream {
            if await !begin() { subscription.stream.finish() }
            let changes = await subscription.stream.next()
            if changes?.isReset == true { wasReset() }
            return changes
        } onCancel: {
            stream.cancel()
        }
    }

    /// Returns a stream of the value of a key: what `read` returns now, and after each change of the key.
    ///
    /// The row that was sent last is not sent again, nor is ``RowVersion/none``: after a reset the key may be as it was. Without a version
    /// each value is sent. If `read` throws, nothing is
    /// sent. The stream ends if the cache is closed or superseded. If the store is suspended, it reads again after the reset
    /// that ``CacheManager/resume()`` notes, and else after an interval. Where time passes by hand, no value waits for it.
    package func changes(
        of key: Key, every interval: Duration, timekeeper: Timekeeper,
        read: @escaping @Sendable () async throws(CacheError) -> (value: Value?, row: RowVersion?)
    ) -> AsyncStream<Value?> {
        // A test that moves time itself waits for a value, and not for an interval.
        let interval = timekeeper.isManual ? .zero : interval
        let stream = ChangeStream<Key, Value>(every: interval, timekeeper: timekeeper) { _ in [:] }
        let subscription = subscribe(stream, to: key)
        let hasBegun = Atomic(false)
        let sent = Mutex<RowVersion?>(nil)
        return AsyncStream {
            if hasBegun.exchange(true, ordering: .relaxed), await subscription.stream.next() == nil { return nil }
            while true {
                do throws(CacheError) {
                    let (value, row) = try await read()
                    let isNew = sent.withLock { sent in
                        defer { sent = row }
                        return sent != row || row == nil
                    }
                    if isNew { return .some(value) }
                } catch {
                    if [.closed, .superseded].contains(error.code) { return nil }
                    // Reading again at intervals would be work in the background, which a suspension rules out.
                    if error.code != .suspended { stream.noteResetLater() }
                }
                if await subscription.stream.next() == nil { return nil }
            }
        } onCancel: {
            stream.cancel()
        }
    }

    /// The streams that there are.
    package var streams: [ChangeStream<Key, Value>] {
        state.withLock { $0.list + $0.ofKeys.values.flatMap(\.values) }
    }

    /// Adds a stream of all changes, or of those of a key.
    func subscribe(
        _ stream: ChangeStream<Key, Value>, to key: Key? = nil
    ) -> ChangeSubscription<Key, Value> {
        let id = state.withLock { state in
            state.lastID += 1
            if let key {
                state.ofKeys[key, default: [:]][state.lastID] = stream
            } else {
                state.streams[state.lastID] = stream
                state.list = Array(state.streams.values)
            }
            observed.store(true, ordering: .releasing)
            return state.lastID
        }
        foreign?.look(every: stream.interval, for: ObjectIdentifier(self)) { [weak self] in
            var deferred = Deferred()
            self?.noteForeign(&deferred)
        }
        return ChangeSubscription(stream: stream) { [weak self] in self?.unsubscribe(id, key) }
    }

    private func unsubscribe(_ id: Int, _ key: Key?) {
        let dropped = state.withLock { state -> (streams: [ChangeStream<Key, Value>?], key: Key?) in
            defer { observed.store(!state.list.isEmpty || !state.ofKeys.isEmpty, ordering: .releasing) }
            guard let key else {
                let dropped = [state.streams.removeValue(forKey: id)] + state.list
                state.list = Array(state.streams.values)
                return (dropped, nil)
            }
            let stream = state.ofKeys[key]?.removeValue(forKey: id)
            guard let place = state.ofKeys.index(forKey: key), state.ofKeys[place].value.isEmpty else {
                return ([stream], nil)
            }
            // The key that the table holds may be another object.
            return ([stream], state.ofKeys.remove(at: place).key)
        }
        // Objects that a stream's closure holds are released here, outside the lock.
        withExtendedLifetime(dropped) {}
        foreign?.stop(ObjectIdentifier(self)) { isObserved }
    }

    /// Ends the looks for commits of other stores, because no stream reports any more.
    func stopLooks() { foreign?.stop(ObjectIdentifier(self)) }

    /// Looks at the file that the store has opened again.
    func follow(_ watch: CommitWatch) { foreign?.follow(watch) }
}

/// Ends a stream when its last reader is released.
final class ChangeSubscription<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    let stream: ChangeStream<Key, Value>
    private let onEnd: @Sendable () -> Void

    init(stream: ChangeStream<Key, Value>, onEnd: @escaping @Sendable () -> Void) {
        self.stream = stream
        self.onEnd = onEnd
    }

    deinit {
        stream.cancel()
        onEnd()
    }
}
