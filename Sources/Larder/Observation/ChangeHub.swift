public import LarderLocks

/// Reports changes to every stream of one cache.
///
/// A writer notes each change here, in the order of the writes and when readers can see them. As a rule the writer is
/// a leading thread, so objects that a note displaces are returned, to be released without a lock: keys that a stream
/// drops, and streams. A stream may be the last holder of a handle and of its manager, whose release waits for the
/// leader.
@usableFromInline
package final class ChangeHub<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct State {
        var streams: [Int: ChangeStream<Key, Value>] = [:]
        /// The owner of each stream.
        var owners: [Int: ObjectIdentifier] = [:]
        /// The streams, to iterate without the lock.
        var list: [ChangeStream<Key, Value>] = []
        var lastID = 0
        var isFinished = false
    }

    private let state = Mutex(State())
    @usableFromInline let observed = Atomic(false)

    package init() {}

    /// A Boolean value that indicates whether there are streams; without any, a write costs only this load.
    @inlinable
    package var isObserved: Bool { observed.load(ordering: .acquiring) }

    // MARK: - Writers

    /// Notes that a key has a value, a new one or another.
    @inlinable
    package func noteUpdated(_ key: Key, _ discards: inout Discards) {
        if isObserved { tellUpdated(key, &discards) }
    }

    @usableFromInline
    func tellUpdated(_ key: Key, _ discards: inout Discards) { tell(&discards) { $0.note(key, .updated) } }

    /// Notes that the keys have values, as one step.
    @usableFromInline
    package func noteUpdated(_ keys: some Collection<Key>, _ discards: inout Discards) {
        if isObserved { tell(&discards) { $0.note(keys, .updated) } }
    }

    /// Notes that the entries of the keys were removed, as one step; pass only keys that had an entry.
    package func noteRemoved(_ keys: some Collection<Key>, _ discards: inout Discards) {
        if isObserved { tell(&discards) { $0.note(keys, .removed) } }
    }

    /// Notes a clear or a purge: everything may have changed.
    package func noteReset(_ discards: inout Discards) {
        if isObserved { tell(&discards) { $0.noteReset() } }
    }

    private func tell(
        _ discards: inout Discards, _ note: (ChangeStream<Key, Value>) -> ChangeLog<Key>.Dropped?
    ) {
        for stream in state.withLock({ $0.list }) {
            discards.add(note(stream))
            discards.add(stream)
        }
    }

    // MARK: - Readers

    /// Returns a stream of the changes from now on, at most one batch in an interval.
    ///
    /// An interval of zero or less sends changes as soon as they are requested. `read` returns the values when a
    /// batch is taken; it runs under no lock and must not block. `owner` is for ``streams(of:)``.
    package func changes(
        every interval: Duration, timekeeper: Timekeeper, owner: ObjectIdentifier? = nil,
        read: @escaping ChangeStream<Key, Value>.Read
    ) -> AsyncStream<CacheChanges<Key, Value>> {
        let stream = ChangeStream(every: interval, timekeeper: timekeeper, read: read)
        let subscription = subscribe(stream, owner)
        return AsyncStream {
            await subscription.stream.next()
        } onCancel: {
            stream.cancel()
        }
    }

    /// Ends every stream once its pending changes were taken, and every later one at once.
    package func finish(_ discards: inout Discards) {
        let streams = state.withLock { state in
            state.isFinished = true
            return state.list
        }
        for stream in streams {
            stream.finish()
            // This may be the last reference to it.
            discards.add(stream)
        }
    }

    /// Returns the streams of an owner.
    func streams(of owner: ObjectIdentifier) -> [ChangeStream<Key, Value>] {
        state.withLock { state in
            state.owners.filter { $0.value == owner }.compactMap { state.streams[$0.key] }
        }
    }

    private func subscribe(_ stream: ChangeStream<Key, Value>, _ owner: ObjectIdentifier?) -> ChangeSubscription<
        Key, Value
    > {
        let (id, isFinished) = state.withLock { state in
            state.lastID += 1
            state.streams[state.lastID] = stream
            state.owners[state.lastID] = owner
            state.list = Array(state.streams.values)
            observed.store(true, ordering: .releasing)
            return (state.lastID, state.isFinished)
        }
        if isFinished { stream.finish() }
        return ChangeSubscription(stream: stream) { [weak self] in self?.unsubscribe(id) }
    }

    private func unsubscribe(_ id: Int) {
        let dropped = state.withLock { state in
            let dropped = (state.streams.removeValue(forKey: id), state.list)
            state.owners[id] = nil
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
