public import LarderLocks
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
        var lastID = 0
    }

    private let state = Mutex(State())
    @usableFromInline let observed = Atomic(false)

    package init() {}

    /// A Boolean value that indicates whether there are streams; without any, a write costs only this load.
    @inlinable
    package var isObserved: Bool { observed.load(ordering: .acquiring) }

    // MARK: - Writers

    /// Notes that the keys have values, as one step.
    @usableFromInline
    package func noteUpdated(_ keys: some Collection<Key>, _ deferred: inout Deferred) {
        if isObserved { tell(&deferred) { $0.note(keys, .updated) } }
    }

    /// Notes that the entries of the keys were removed, as one step; pass only keys that had an entry.
    package func noteRemoved(_ keys: some Collection<Key>, _ deferred: inout Deferred) {
        if isObserved { tell(&deferred) { $0.note(keys, .removed) } }
    }

    /// Notes a clear or a purge: everything may have changed.
    package func noteReset(_ deferred: inout Deferred) {
        if isObserved { tell(&deferred) { $0.noteReset() } }
    }

    private func tell(
        _ deferred: inout Deferred, _ note: (ChangeStream<Key, Value>) -> ChangeLog<Key>.Dropped?
    ) {
        for stream in state.withLock({ $0.list }) {
            deferred.add(note(stream))
            deferred.add(stream)
        }
    }

    // MARK: - Readers

    /// Returns a stream of the changes from now on, at most one batch in an interval.
    ///
    /// An interval of zero or less sends changes as soon as they are requested. `read` returns the values when a
    /// batch is taken; it runs under no lock and must not block.
    package func changes(
        every interval: Duration, timekeeper: Timekeeper, read: @escaping ChangeStream<Key, Value>.Read
    ) -> AsyncStream<CacheChanges<Key, Value>> {
        let stream = ChangeStream(every: interval, timekeeper: timekeeper, read: read)
        let subscription = subscribe(stream)
        return AsyncStream {
            await subscription.stream.next()
        } onCancel: {
            stream.cancel()
        }
    }

    /// The streams that there are.
    package var streams: [ChangeStream<Key, Value>] { state.withLock { $0.list } }

    private func subscribe(_ stream: ChangeStream<Key, Value>) -> ChangeSubscription<Key, Value> {
        let id = state.withLock { state in
            state.lastID += 1
            state.streams[state.lastID] = stream
            state.list = Array(state.streams.values)
            observed.store(true, ordering: .releasing)
            return state.lastID
        }
        return ChangeSubscription(stream: stream) { [weak self] in self?.unsubscribe(id) }
    }

    private func unsubscribe(_ id: Int) {
        let dropped = state.withLock { state in
            let dropped = (state.streams.removeValue(forKey: id), state.list)
            state.list = Array(state.streams.values)
            observed.store(!state.list.isEmpty, ordering: .releasing)
            return dropped
        }
        // Objects that a stream's closure holds are released here, outside the lock.
        withExtendedLifetime(dropped) {}
    }
}

/// Ends a stream when its last reader is released.
private final class ChangeSubscription<Key: Hashable & Sendable, Value: Sendable>: Sendable {
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
