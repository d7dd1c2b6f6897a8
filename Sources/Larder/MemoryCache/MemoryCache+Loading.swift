internal import LarderLocks
internal import LarderStore

/// Values that are loaded if they are missing, once for all callers that ask at the same time.
///
/// Calls that miss a key while a load of it runs share this load: each gets its value, or its error, which is not stored. A
/// load does not overwrite a key that is set, updated or removed in the meantime; the callers of the load get its value all the
/// same. Loaded values have the cost 0 and the age of the cache.
///
/// A closure may use the cache. If it asks, itself or through the loads that it begins, for a key that it is loading, that call
/// throws ``CacheError/Code/recursiveGeneration``.
extension MemoryCache {
    /// Returns the value of a key; if there is none, `generate` loads it on this thread.
    ///
    /// The call waits for a synchronous load of another thread, but not for an asynchronous one, and for none from inside a
    /// load: it runs its own closure then, and what is stored first stays.
    ///
    /// - Throws: What `generate` throws, or `.recursiveGeneration`.
    @_disfavoredOverload
    @inlinable
    public func value(forKey key: Key, generate: (Key) throws -> Value) throws -> Value {
        if let value = value(forKey: key) { return value }
        return try loadedValue(key, generate)
    }

    /// Returns the value of a key; if there is none, `generate` loads it in a task of its own.
    ///
    /// A caller that is cancelled throws `CancellationError` at once. The task is cancelled when the last caller has left, and
    /// then nothing is stored.
    ///
    /// - Throws: What `generate` throws, `CancellationError`, or `.recursiveGeneration`.
    @inlinable
    public func value(
        forKey key: Key, generate: @escaping @Sendable (Key) async throws -> Value
    ) async throws -> Value {
        if let value = value(forKey: key) { return value }
        return try await loadedValue(key, generate)
    }

    @usableFromInline
    func loadedValue(_ key: Key, _ generate: (Key) throws -> Value) throws -> Value {
        let loaded: [Value?] = try loads.load([key], needsValue: true) { ticket in
            var load = begin(ticket, [key], nil)
            if load.rows.isEmpty { return finish(load, ticket) }
            let start = timekeeper.nanoseconds()
            do { try end(&load, ticket, with: [.value(try generate(key))], since: start) } catch {
                finish(load, ticket, error)
            }
        }
        return try one(loaded)
    }

    @usableFromInline
    func loadedValue(_ key: Key, _ generate: @escaping @Sendable (Key) async throws -> Value) async throws -> Value {
        try one(
            try await loads.load([key], needsValue: true) {
                await self.lead($0, [key], nil) { [.value(try await generate($0[0].key))] }
            })
    }

    // Each load that succeeds has an output for its key.
    func one(_ loaded: [Value?]) throws -> Value {
        if let value = loaded[0] { return value }
        throw CancellationError()
    }

    // MARK: One load

    /// Loads what rows have no value for, in their order.
    typealias Make = @Sendable ([LoadRow]) async throws -> [Generated<Value>?]

    /// A key of a load, which is watched until the load is finished, so that each write in the meantime overtakes it.
    struct LoadRow: Sendable {
        let key: Key
        let hash: UInt64
        /// The place of the key in the load.
        fileprivate let place: Int
        fileprivate let watch: Int
        /// What has expired or is due; nil if there is nothing.
        fileprivate(set) var old: OldValue?
    }

    /// A value that is to be loaded again.
    struct OldValue: Sendable {
        let value: Value
        let cost: Int
        let times: RefreshTimes
        let own: OwnAge?
        let isExpired: Bool
    }

    /// The keys of a load.
    private struct MemoryLoad: Sendable {
        /// Those that are loaded.
        var rows: [LoadRow]
        /// In the order of the load's keys.
        var values: [Value?]
        var watches: [Int]
    }

    /// Runs a load.
    ///
    /// - Parameters:
    ///   - keys: The keys of the call, of which the load has some.
    ///   - rule: Decides which values that have not expired are loaded all the same; nil for none.
    func lead(_ ticket: LoadTicket, _ keys: [Key], _ rule: RefreshRule?, _ make: Make) async {
        var load = begin(ticket, ticket.places.map { keys[$0.inCall] }, rule)
        if load.rows.isEmpty { return finish(load, ticket) }
        let start = timekeeper.nanoseconds()
        do { try end(&load, ticket, with: try await make(load.rows), since: start) } catch {
            finish(load, ticket, error)
        }
    }

    /// Begins a load; keys that have a value in the meantime have their results.
    private func begin(_ ticket: LoadTicket, _ keys: [Key], _ rule: RefreshRule?) -> MemoryLoad {
        let (wanted, now, moment) = (keys.map { (key: $0, hash: seed.hash($0)) }, now(), moment())
        return state.withLock { state in
            var load = MemoryLoad(rows: [], values: Array(repeating: nil, count: keys.count), watches: [])
            for (place, (key, hash)) in wanted.enumerated() {
                let watch = state.watch(CollectionOfOne((key: key, hash: hash)))
                let found = state.table.locate(key, hash: hash)
                let old = found == 0 ? nil : state.oldValue(at: found, now: now)
                load.watches.append(watch)
                if let old, !old.isExpired, rule?.isDue(old.times, at: moment) != true {
                    load.values[place] = old.value
                } else {
                    state.counts.loads += 1
                    load.rows.append(LoadRow(key: key, hash: hash, place: place, watch: watch, old: old))
                }
            }
            return load
        }
    }

    /// Ends a load, and stores its results where no key was written since, and not if the last caller has left.
    private func end(
        _ load: inout MemoryLoad, _ ticket: LoadTicket, with results: [Generated<Value>?], since start: Int64
    ) throws(CacheError) {
        let (time, now) = (timekeeper.nanoseconds() - start, moment())
        var (changes, absences) = ([Change](), [Int: Int64]())
        for (row, result) in zip(load.rows, results) {
            guard let result else { continue }
            let change = try change(row, result, at: now)
            load.values[row.place] = change.value
            if case .absent(let age) = result.outcome {
                let end = age.rule.drawn.end(writtenAt: now, accessedAt: now, id: 0)
                if end >= now { absences[row.place] = end }
            }
            if loads.begins(ticket.load, toStoreAt: row.key) { changes.append(change) }
        }
        let hasOwnAges = changes.contains { $0.own != nil }
        // Before, so that no later read takes an entry for one without an end.
        if hasOwnAges { self.hasOwnAges.store(true, ordering: .relaxed) }
        let (isFollowed, wanted) = (hasOwnAges || !absences.isEmpty, changes)
        let done = state.withLock { state in
            // As long as keys are known to have no value, writes have to tell.
            if isFollowed { state.isFollowed = true }
            return state.make(wanted)
        }
        loads.overtake(done.changes.map { $0.row.key } + done.removed.map { $0.key }, by: ticket.load)
        finish(load, ticket, absences: absences, time: time)
        // Last, since the program's closure may wait for the callers.
        for change in done.changes { if let end = change.end { noteEnd(end) } }
        if !done.changes.isEmpty {
            reportWrites(
                of: done.changes.map { $0.row.key }, done.displaced, evicted: done.discards, isLoaded: true)
        }
        report(done.removed, .removed)
    }

    /// What a load does with a key.
    struct Change: Sendable {
        let row: LoadRow
        /// The value for the callers.
        var value: Value?
        var isStored = true
        var cost = 0
        var end: Int64?
        var own: OwnAge?
        var hint = RefreshHint.none
    }

    private func change(
        _ row: LoadRow, _ result: Generated<Value>, at now: Int64
    ) throws(CacheError) -> Change {
        var change = Change(row: row)
        switch result.outcome {
        case .value(let value, let attributes), .unstored(let value, let attributes):
            if attributes.extendedData != nil || !attributes.tags.isEmpty {
                throw CacheError(
                    .invalidConfiguration,
                    "The closure that loads \(described(row.key)) has returned extended data or tags, which a memory cache does not"
                        + " keep. Return the value, its age and its cost alone, or use a Cache.")
            }
            (change.value, change.cost) = (value, BoundedTable<Key, Value>.clamped(attributes.cost ?? 0))
            change.hint = attributes.refresh?.hint(writtenAt: now) ?? .none
            if let age = attributes.maxAge {
                try age.requireNumber(described(row.key))
                let rule = age.rule.drawn
                let end = rule.end(writtenAt: now, accessedAt: now, id: 0)
                (change.end, change.own) = (end, OwnAge(rule, end: end, writtenAt: now))
                change.isStored = end >= now
            } else {
                change.end = newEnd()
            }
            if case .unstored = result.outcome { change.isStored = false }
        case .notModified:
            guard let old = row.old else {
                throw CacheError(
                    .invalidConfiguration,
                    "The closure that loads \(described(row.key)) has returned .notModified without an old value. Return it only if"
                        + " the closure got an entry.")
            }
            (change.value, change.cost, change.hint) = (old.value, old.cost, old.times.hint.renewed(at: now))
            change.own = old.own?.renewed(at: now)
            change.end = change.own?.end ?? newEnd()
        case .absent(let age):
            try age.requireNumber("the absence of \(described(row.key))")
            change.isStored = false
        }
        return change
    }

    private func described(_ key: Key) -> String { "key \"\(key)\" of \(described)" }

    private func finish(_ load: MemoryLoad, _ ticket: LoadTicket, _ error: any Error) {
        loads.finish(ticket, Result<[Value?], any Error>.failure(error))
        endWatches(load)
    }

    private func finish(_ load: MemoryLoad, _ ticket: LoadTicket, absences: [Int: Int64] = [:], time: Int64? = nil) {
        loads.finish(ticket, .success(load.values), absences: absences, time: time)
        endWatches(load)
    }

    private func endWatches(_ load: MemoryLoad) {
        let watches = state.withLock { state in load.watches.map { state.endWatch($0) } }
        withExtendedLifetime(watches) {}
    }
}

extension BoundedTable {
    typealias LoadChange = MemoryCache<Key, Value>.Change

    /// What the changes of a load have done, in one step.
    struct LoadChanges: Sendable {
        var changes: [LoadChange] = []
        /// What each of them has displaced.
        var displaced: [Displaced<Key, Value>] = []
        var discards: [Table.Node] = []
        var removed: [Table.Node] = []
    }

    /// Returns the value at an index, for the closure that loads it again.
    func oldValue(at index: UInt32, now: Int64) -> MemoryCache<Key, Value>.OldValue {
        .init(
            value: table.value(at: index), cost: cost(of: index), times: refreshTimes(at: index),
            own: ownAge(of: index), isExpired: isExpired(index, now: now))
    }

    /// Returns what says when the value at an index is to be loaded again.
    func refreshTimes(at index: UInt32) -> RefreshTimes {
        let end = Int(index) < ends.count ? ends[Int(index)] : .max
        return RefreshTimes(end: end, age: Int64(clamping: age(of: index).magnitude), hint: hint(of: index))
    }

    /// Makes the changes of a load where no key was written since.
    fileprivate mutating func make(_ changes: [LoadChange]) -> LoadChanges {
        var done = LoadChanges()
        for change in changes where !isWritten(change.row.watch) {
            let (key, hash) = (change.row.key, change.row.hash)
            guard change.isStored, let value = change.value else {
                noteWrite(key, hash: hash)
                let found = table.locate(key, hash: hash)
                if found != 0 { done.removed.append(remove(found)) }
                continue
            }
            let beside = (change.own == nil ? 0 : 2 * EntryBytes.ofEnd) + (change.hint.isNone ? 0 : EntryBytes.ofHint)
            let displaced = setValue(
                value, forKey: key, hash: hash, cost: change.cost,
                bytes: Self.bytes(of: key, cost: change.cost) + beside,
                end: change.end, age: change.own?.age, into: &done.discards
            ) { table, index in table.setHint(change.hint, at: index) }
            done.changes.append(change)
            done.displaced.append(displaced)
        }
        return done
    }
}

extension OwnAge {
    /// The age after it has begun again.
    func renewed(at now: Int64) -> OwnAge {
        OwnAge(end: age == .min ? .max : now.addingSaturated(Int64(clamping: age.magnitude)), age: age)
    }
}
