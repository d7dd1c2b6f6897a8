internal import Synchronization

/// The stores of this process, so that managers on one path share one.
///
/// Two tables, whose locks are held for a moment; each place's own, held while its store is opened or closed, so that a
/// slow disk holds up nobody else; and before it that of the path, since a reader and a writer that open at the same time
/// are two places of one file. See *Synchronization*.
final class StoreRegistry: Sendable {
    static let shared = StoreRegistry()

    /// Where a store stands, whether or not one is open there.
    final class Place: Sendable {
        struct State: Sendable {
            var store: Store?
            var users = 0
            /// How many of them may change something; the others joined a store that was open for writing.
            var writers = 0
        }

        let state = Mutex(State())
    }

    /// Lets one at a time open a path.
    private final class Gate: Sendable {
        let lock = Mutex(())
    }

    private let gates = Mutex<[StoreLocation: (gate: Gate, users: Int)]>([:])

    private struct Key: Hashable {
        let location: StoreLocation
        let access: CacheManager.Access
    }

    /// How many hold or want each place: one that nobody does is forgotten.
    private let places = Mutex<[Key: (place: Place, users: Int)]>([:])

    /// The store at `location`, opened by `open` unless it is open already.
    ///
    /// A reader joins a store that is open for writing, if there is one. A writer that opens while only readers have the
    /// file makes them connect anew: SQLite shares the log's index within a process, and would share a read-only one.
    func acquire(
        _ location: StoreLocation, _ access: CacheManager.Access, open: () throws(CacheError) -> Store
    ) throws(CacheError) -> StoreLease {
        let gate = gates.withLock { gates in
            gates[location, default: (Gate(), 0)].users += 1
            return gates[location]!.gate
        }
        defer {
            gates.withLock { gates in
                gates[location]!.users -= 1
                if gates[location]!.users == 0 { gates[location] = nil }
            }
        }
        return try gate.lock.withLock { _ throws(CacheError) in try acquireAlone(location, access, open) }
    }

    private func acquireAlone(
        _ location: StoreLocation, _ access: CacheManager.Access, _ open: () throws(CacheError) -> Store
    ) throws(CacheError) -> StoreLease {
        if access == .readOnly, let lease = join(Key(location: location, access: .readWrite)) { return lease }
        let key = Key(location: location, access: access)
        let place = enter(key)
        do {
            let store = try place.state.withLock { state throws(CacheError) in
                if state.store == nil { state.store = try openAlone(location, access, open) }
                state.users += 1
                state.writers += 1
                if state.writers == 1 { _ = state.store!.setWritable(true) }
                _ = ExitFlush.isArranged
                state.store!.followIntoBackground()
                return state.store!
            }
            return StoreLease(store: store) { [self] in leave(key, place, closing: true, writer: true) }
        } catch {
            _ = leave(key, place, closing: false)
            throw error
        }
    }

    private func openAlone(
        _ location: StoreLocation, _ access: CacheManager.Access, _ open: () throws(CacheError) -> Store
    ) throws(CacheError) -> Store {
        guard access == .readWrite, let reading = join(Key(location: location, access: .readOnly)) else {
            return try open()
        }
        defer { _ = reading.end() }
        var result: Result<Store, CacheError>?
        reading.store.withoutReaders { result = Result { () throws(CacheError) in try open() } }
        return try result!.get()
    }

    /// The store at `key` if one is open there.
    private func join(_ key: Key) -> StoreLease? {
        let known = places.withLock { places -> Place? in
            places[key]?.users += 1
            return places[key]?.place
        }
        guard let known else { return nil }
        let store = known.state.withLock { state in
            if state.store != nil { state.users += 1 }
            return state.store
        }
        guard let store else {
            _ = leave(key, known, closing: false)
            return nil
        }
        return StoreLease(store: store) { [self] in leave(key, known, closing: true) }
    }

    /// The stores that are open for writing.
    var writableStores: [Store] {
        let found = places.withLock { places in places.filter { $0.key.access == .readWrite }.map(\.value.place) }
        return found.compactMap { $0.state.withLock { $0.store } }
    }

    private func enter(_ key: Key) -> Place {
        places.withLock { places in
            places[key, default: (Place(), 0)].users += 1
            return places[key]!.place
        }
    }

    /// - Returns: What the closing of the store has to tell.
    private func leave(_ key: Key, _ place: Place, closing: Bool, writer: Bool = false) -> StoreNotice? {
        var notice: StoreNotice?
        if closing {
            notice = place.state.withLock { state in
                state.users -= 1
                if writer { state.writers -= 1 }
                guard state.users == 0 else {
                    return writer && state.writers == 0 ? state.store?.setWritable(false) : nil
                }
                defer { state.store = nil }
                // Under the place's lock: who opens here next finds the files let go of.
                return state.store?.close()
            }
        }
        places.withLock { places in
            places[key]!.users -= 1
            if places[key]!.users == 0 { places[key] = nil }
        }
        return notice
    }
}

/// One manager's share in a store; the last to end closes it.
final class StoreLease: Sendable {
    let store: Store
    private let onEnd: Mutex<(@Sendable () -> StoreNotice?)?>

    init(store: Store, onEnd: @escaping @Sendable () -> StoreNotice?) {
        self.store = store
        self.onEnd = Mutex(onEnd)
    }

    deinit {
        _ = end()
    }

    /// Gives the share back; harmless the second time.
    ///
    /// - Returns: What the closing of the store has to tell.
    func end() -> StoreNotice? {
        let onEnd = onEnd.withLock { $0.take() }
        return onEnd?()
    }
}
