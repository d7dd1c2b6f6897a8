public import Foundation
public import LarderLocks
internal import LarderSQLite
public import LarderStore

extension Cache {
    /// Returns the entry of a key: the value and everything that is stored with it.
    ///
    /// The entry is read from the disk, and the read counts as access unless the entry has expired.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - allowingExpired: A Boolean value that indicates whether an expired entry is returned, if it is still stored.
    /// - Throws: A read error, see ``CacheError``. `.undecodable` if the value is of another type.
    public func entry(
        forKey key: Key, allowingExpired: Bool = false
    ) throws(CacheError) -> CacheEntry<Key, Value>? {
        let stored = try stored(key)
        let now = rows.store.time.now()
        let found = try throwing("read the entry", stored) { () throws(StoreError) in try rows.row(stored) }
        guard let row = found else { return missed() }
        let isExpired = row.header.end < now
        if isExpired && !allowingExpired { return missed() }
        let value: Value
        do throws(CacheError) {
            value = try decode(row)
        } catch {
            let _: Value? = missed()
            throw error
        }
        copies.count { $0.diskHits += 1 }
        var header = row.header
        if isExpired {
            // Another write may have come in between.
            if let now = try headerWithAccess(stored), now.revision == header.revision { header = now }
        } else {
            header = noteAccess(to: key, copies.seed.hash(key), header, at: now)
        }
        return CacheEntry(key, value, header, isExpired: isExpired)
    }

    /// Returns the entry of a key from the disk: the value and everything that is stored with it.
    public func entry(
        forKey key: Key, allowingExpired: Bool = false
    ) async throws(CacheError) -> CacheEntry<Key, Value>? {
        try await reading { () throws(CacheError) in
            try self.entry(forKey: key, allowingExpired: allowingExpired)
        }
    }

    /// Returns the metadata of an entry without reading its value; nil if there is none that may be served.
    ///
    /// The read doesn't count as access.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``.
    public func metadata(forKey key: Key) throws(CacheError) -> EntryMetadata? {
        let stored = try stored(key)
        guard var header = try headerWithAccess(stored), header.end >= rows.store.time.now() else { return nil }
        let hash = copies.seed.hash(key)
        if let moment = copies.state.withLock({ $0.accessedAt(key, hash: hash) }) {
            header.note(accessAt: moment)
        }
        return EntryMetadata(header)
    }

    /// Returns the metadata of an entry without reading its value; nil if there is none that may be served.
    public func metadata(forKey key: Key) async throws(CacheError) -> EntryMetadata? {
        try await reading { () throws(CacheError) in try self.metadata(forKey: key) }
    }

    /// Returns the bytes that are stored with a value; nil if there are none, or no value that may be served.
    ///
    /// The read doesn't count as access.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``.
    public func extendedData(forKey key: Key) throws(CacheError) -> Data? {
        try liveHeader(key)?.meta.extendedData
    }

    /// Returns the bytes that are stored with a value; nil if there are none, or no value that may be served.
    public func extendedData(forKey key: Key) async throws(CacheError) -> Data? {
        try await reading { () throws(CacheError) in try self.extendedData(forKey: key) }
    }

    /// Returns whether a key has a value that may be served, without decoding the value.
    ///
    /// The look-up doesn't count as access. A value that does not decode counts until its row is deleted.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``.
    public func contains(_ key: Key) throws(CacheError) -> Bool { try liveHeader(key) != nil }

    /// Returns whether a key has a value that may be served, without decoding the value.
    public func contains(_ key: Key) async throws(CacheError) -> Bool {
        try await reading { () throws(CacheError) in try self.contains(key) }
    }

    /// Returns the values of the given keys that have one, at one moment.
    ///
    /// Each value that is returned counts as accessed. A value that does not decode is left out, and an event reports
    /// it.
    ///
    /// - Parameter keys: The keys.
    /// - Throws: A read error, see ``CacheError``.
    public func values(forKeys keys: some Sequence<Key>) throws(CacheError) -> [Key: Value] { try find(Array(keys)) }

    /// Returns the values of the given keys that have one, at one moment.
    public func values(forKeys keys: some Sequence<Key>) async throws(CacheError) -> [Key: Value] {
        let keys = Array(keys)
        return try await reading { () throws(CacheError) in try self.find(keys) }
    }

    /// Returns the entries of the given keys that have one, at one moment.
    ///
    /// Each entry that is returned counts as accessed. One that does not decode is left out, and an event reports it.
    ///
    /// - Parameter keys: The keys.
    /// - Throws: A read error, see ``CacheError``.
    public func entries(forKeys keys: some Sequence<Key>) throws(CacheError) -> [Key: CacheEntry<Key, Value>] {
        let (wanted, order) = try wanted(keys)
        let found = try throwing("read entries") { () throws(StoreError) in try rows.rows(order) }
        let now = rows.store.time.now()
        var entries: [Key: CacheEntry<Key, Value>] = [:]
        for row in found where row.header.end >= now {
            guard let key = wanted[row.header.key], let value = valueOrReported(of: row) else { continue }
            entries[key] = CacheEntry(
                key, value, noteAccess(to: key, copies.seed.hash(key), row.header, at: now))
        }
        let (hits, misses) = (entries.count, order.count - entries.count)
        copies.count {
            $0.diskHits += hits
            $0.misses += misses
        }
        return entries
    }

    /// Returns the entries of the given keys that have one, at one moment.
    public func entries(
        forKeys keys: some Sequence<Key>
    ) async throws(CacheError) -> [Key: CacheEntry<Key, Value>] {
        let keys = Array(keys)
        return try await reading { () throws(CacheError) in try self.entries(forKeys: keys) }
    }

    /// Returns the metadata of the given keys that have an entry which may be served, at one moment, without reading values.
    ///
    /// The read doesn't count as access.
    ///
    /// - Parameter keys: The keys.
    /// - Throws: A read error, see ``CacheError``.
    public func metadata(forKeys keys: some Sequence<Key>) throws(CacheError) -> [Key: EntryMetadata] {
        let (wanted, order) = try wanted(keys)
        let found = try throwing("read metadata") { () throws(StoreError) in try rows.headers(order) }
        let now = rows.store.time.now()
        var metadata: [Key: EntryMetadata] = [:]
        for var header in found where header.end >= now {
            guard let key = wanted[header.key] else { continue }
            let hash = copies.seed.hash(key)
            if let moment = copies.state.withLock({ $0.accessedAt(key, hash: hash) }) { header.note(accessAt: moment) }
            metadata[key] = EntryMetadata(header)
        }
        return metadata
    }

    /// Returns the metadata of the given keys that have an entry which may be served, at one moment.
    public func metadata(forKeys keys: some Sequence<Key>) async throws(CacheError) -> [Key: EntryMetadata] {
        let keys = Array(keys)
        return try await reading { () throws(CacheError) in try self.metadata(forKeys: keys) }
    }

    /// Returns keys by their form on the disk, and these forms, each once.
    private func wanted(_ keys: some Sequence<Key>) throws(CacheError) -> ([StoredKey: Key], [StoredKey]) {
        var (wanted, order) = ([StoredKey: Key](), [StoredKey]())
        for (key, stored) in try pairs(keys) where wanted.updateValue(key, forKey: stored) == nil {
            order.append(stored)
        }
        return (wanted, order)
    }

    private func liveHeader(_ key: Key) throws(CacheError) -> EntryHeader? {
        let stored = try stored(key)
        let header = try throwing("look the key up", stored) { () throws(StoreError) in try rows.header(stored) }
        return header.flatMap { $0.end >= rows.store.time.now() ? $0 : nil }
    }

    private func headerWithAccess(_ stored: StoredKey) throws(CacheError) -> EntryHeader? {
        try throwing("look the key up", stored) { () throws(StoreError) in try rows.header(stored, withAccess: true) }
    }

    // MARK: Counting

    /// The number of entries that may be served.
    ///
    /// While no entry can have expired, the store usually knows the number. Otherwise the ages of all entries are read.
    public var count: Int {
        get throws(CacheError) {
            try Int(
                throwing("count the entries") { () throws(StoreError) in try rows.count(at: rows.store.time.now()) })
        }
    }

    /// A Boolean value that indicates whether no entry may be served.
    public var isEmpty: Bool {
        get throws(CacheError) {
            try throwing("look for an entry") { () throws(StoreError) in try !rows.hasEntry(at: rows.store.time.now()) }
        }
    }

    /// The number of bytes of the payloads and extended data of all entries, including expired ones that are still
    /// stored.
    public var sizeOnDisk: Int64 {
        get throws(CacheError) { try throwing("measure the cache") { () throws(StoreError) in try rows.totals() }.size }
    }

    /// Returns the number of entries that may be served, and blocks no thread of the cooperative pool.
    ///
    /// - Throws: A read error, see ``CacheError``.
    public func count() async throws(CacheError) -> Int {
        try await reading { () throws(CacheError) in try self.count }
    }

    /// Returns whether no entry may be served, and blocks no thread of the cooperative pool.
    ///
    /// - Throws: A read error, see ``CacheError``.
    public func isEmpty() async throws(CacheError) -> Bool {
        try await reading { () throws(CacheError) in try self.isEmpty }
    }

    /// Returns the number of bytes of all payloads and extended data, and blocks no thread of the cooperative pool.
    ///
    /// - Throws: A read error, see ``CacheError``.
    public func sizeOnDisk() async throws(CacheError) -> Int64 {
        try await reading { () throws(CacheError) in try self.sizeOnDisk }
    }

    /// The counters of the cache since it was opened by this manager, or since ``resetStatistics()``.
    public var statistics: CacheStatistics {
        let loading = copies.loads.counts
        return CacheStatistics(copies.state.withLock { $0.counts.with(loading).since($0.resetCounts) })
    }

    /// Sets the counters of ``statistics`` to zero.
    public func resetStatistics() {
        let loading = copies.loads.counts
        copies.state.withLock { $0.resetCounts = $0.counts.with(loading) }
    }
}

extension Cache {
    /// Returns the file of a key's payload; nil if the payload is in its row, or if there is no value that may be
    /// served.
    ///
    /// The call counts as access. The file exists until the entry is replaced or deleted. A program that still has
    /// it open then goes on reading the old bytes. The file is read-only, and only the store may change or delete it.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``.
    public func fileURL(forKey key: Key) throws(CacheError) -> URL? {
        let stored = try stored(key)
        let now = rows.store.time.now()
        return try throwing("find the file", stored) { () throws(StoreError) in
            guard let (path, header) = try rows.filePath(stored), header.end >= now else { return nil }
            noteAccess(to: key, copies.seed.hash(key), header, at: now)
            return URL(fileURLWithPath: path)
        }
    }

    /// Returns the file of a key's payload; nil if the payload is in its row, or if there is no value that may be
    /// served.
    public func fileURL(forKey key: Key) async throws(CacheError) -> URL? {
        try await reading { () throws(CacheError) in try self.fileURL(forKey: key) }
    }
}

/// The read path: memory, else the disk.
///
/// It is inlinable, since generic code that is not specialized for the types of a cache takes a tenth of a read.
extension Cache {
    /// Returns the value of a key from memory by a full look, or from the disk.
    ///
    /// - Parameters:
    ///   - hash: The hash of the key.
    ///   - ticket: The ticket of a look that has found no copy; nil if memory is to be looked at.
    @inlinable
    func find(_ key: Key, _ hash: UInt64, absentSince ticket: ReadTicket? = nil) throws(CacheError) -> Value? {
        let (stored, now) = (try stored(key), rows.now())
        if let ticket { return try findOnDisk(key, stored, hash, at: now, ticket) }
        let (look, ticket) = lookUp(key, hash, now)
        switch look {
        case .hit, .slid: return served(look, at: now)
        case .expired: return missed(at: now)
        case .unsure(let value, let revision):
            // Another store has committed, or the caches were cleared: the copy is good if the row is the same.
            guard let header = try rows.currentHeader(stored) else {
                copies.removed(key, hash: hash, revision: revision)
                return missed(at: now)
            }
            guard header.revision == revision else {
                copies.replaced(key, hash: hash, revision: revision)
                break
            }
            if header.end < now { return missed(at: now) }
            noteAccess(to: key, hash, header, at: now, confirming: ticket)
            copies.count { $0.memoryHits += 1 }
            return value
        case .absent: break
        }
        return try findOnDisk(key, stored, hash, at: now, ticket)
    }

    /// Returns the value of a key from its row, and offers it to memory.
    @inlinable
    func findOnDisk(
        _ key: Key, _ stored: StoredKey, _ hash: UInt64, at now: Int64, _ ticket: ReadTicket
    ) throws(CacheError) -> Value? {
        var other: StoredRow?
        guard let row = try rows.plainRow(stored, readAt: now, orElse: &other) else {
            guard let row = other, row.header.end >= now else { return missed(at: now) }
            let value: Value
            do throws(CacheError) { value = try decode(row) } catch {
                let _: Value? = missed(at: now)
                throw error
            }
            offer(value, of: row, key, hash, at: now, ticket)
            return value
        }
        if row.end < now { return missed(at: now) }
        let value: Value
        do throws(CacheError) { value = try codec.decode(row.payload, cache: name, key: stored.name) } catch {
            noteUndecodable(stored, revision: row.revision, error)
            throw error
        }
        if copies.isOff.load(ordering: .relaxed) {
            copies.count { $0.diskHits += 1 }
            rows.noteAccess(to: row.summary, at: now)
            return value
        }
        let copy = copy(of: value, key, hash, stored, payloadSize: row.payload.count, cost: nil)
        let isKept = copies.offer(copy, row.summary, at: now, ticket)
        if !isKept { noteAccess(to: key, hash, row.summary, at: now) }
        return value
    }

    /// Returns the value of a key if memory may serve it.
    @inlinable
    func valueInMemory(_ key: Key) -> Value? {
        let hash = copies.seed.hash(key)
        var ticket: ReadTicket?
        if let value = hit(key, hash, &ticket) { return value }
        if ticket != nil { return nil }
        let now = rows.now()
        return served(lookUp(key, hash, now).0, at: now)
    }

    @inlinable
    func served(_ look: TierState<Key, Value>.LookUp, at now: Int64) -> Value? {
        switch look {
        case .hit(let value): return value
        case .slid(let value, let row):
            rows.noteAccess(to: row, at: now)
            return value
        case .expired, .unsure, .absent: return nil
        }
    }

    /// Looks a key up in memory.
    ///
    /// The epoch is that of the moment before, so what a later read finds is at least as new.
    @inlinable
    func lookUp(_ key: Key, _ hash: UInt64, _ now: Int64) -> (TierState<Key, Value>.LookUp, ReadTicket) {
        copies.state.withLock { $0.lookUp(key, hash: hash, now: now) }
    }

    /// Offers a value that was read to memory, and notes the access.
    @inlinable
    func offer(
        _ value: Value, of row: StoredRow, _ key: Key, _ hash: UInt64, at now: Int64, _ ticket: ReadTicket
    ) {
        var header = row.header
        header.note(accessAt: now)
        let copy = copy(of: value, key, hash, row.header.key, payloadSize: row.payload.count, cost: header.meta.cost)
        let isKept = copies.offer(copy, header.summary, at: now, ticket)
        if !isKept { noteAccess(to: key, hash, header, at: now) }
        if isKept, header.slidingAge != nil { rows.noteAccess(to: header.summary, at: now) }
    }

    /// Notes an access to an entry whose copy in memory, if there is one, was not read, and returns its header after it.
    @discardableResult
    @inlinable
    func noteAccess(
        to key: Key, _ hash: UInt64, _ header: EntryHeader, at now: Int64, confirming ticket: ReadTicket? = nil
    ) -> EntryHeader {
        var header = header
        header.note(accessAt: now)
        noteAccess(to: key, hash, header.summary, at: now, confirming: ticket)
        return header
    }

    @inlinable
    func noteAccess(
        to key: Key, _ hash: UInt64, _ row: RowSummary, at now: Int64, confirming ticket: ReadTicket? = nil
    ) {
        let isNoted = copies.state.withLock {
            $0.noteAccess(to: key, hash: hash, row, at: now, confirming: ticket)
        }
        if !isNoted || row.slidingAge != nil { rows.noteAccess(to: row, at: now) }
    }

    /// Counts a miss.
    ///
    /// - Parameter now: The time, if it was read.
    @inlinable
    func missed<R>(at now: Int64? = nil) -> R? {
        copies.state.withLock { state in
            state.counts.misses += 1
            if let now { state.setNow(now) }
        }
        return nil
    }

    /// Returns the value in a row.
    ///
    /// A value that does not decode is reported, and its row deleted in the background if the options say so.
    @inlinable
    func decode(_ row: StoredRow) throws(CacheError) -> Value {
        do throws(CacheError) {
            return try codec.decode(row.payload, cache: name, key: row.header.key.name)
        } catch {
            noteUndecodable(row.header, error)
            throw error
        }
    }

    /// Counts a miss, and reports a value that does not decode, unless it was replaced.
    @usableFromInline
    func noteUndecodable(_ stored: StoredKey, revision: Int64, _ error: CacheError) {
        let _: Value? = missed()
        let failure = error
        do throws(CacheError) {
            guard let header = try rows.currentHeader(stored), header.revision == revision else { return }
            noteUndecodable(header, failure)
        } catch {
            reportUndecodable(stored, failure)
        }
    }

    @usableFromInline
    func noteUndecodable(_ header: EntryHeader, _ error: CacheError) {
        if undecodable == .drop { rows.removeLater(header) }
        reportUndecodable(header.key, error)
    }

    private func reportUndecodable(_ key: StoredKey, _ error: CacheError) {
        copies.count { $0.failures += 1 }
        manager.reporter.report(
            CacheEvent(.undecodable, cacheName: name, key: key.name, message: error.message), .warning, error: error)
    }

    /// The copy that memory keeps of a value.
    @inlinable
    func copy(
        of value: Value, _ key: Key, _ hash: UInt64, _ stored: StoredKey, payloadSize: Int, cost: Int64?
    ) -> NewCopy<Key, Value> {
        NewCopy(
            key: key, hash: hash, value: value,
            cost: TierState<Key, Value>.Memory.clamped(cost.map { Int(clamping: $0) } ?? payloadSize),
            bytes: EntryBytes.ofKey(key, encodedCount: stored.encodedCount)
                + EntryBytes.ofValue(Value.self, encodedCount: payloadSize))
    }

    // MARK: Many keys

    /// Returns the values of keys at one moment: all from memory, or all from the disk.
    func find(_ keys: [Key]) throws(CacheError) -> [Key: Value] {
        var wanted: [StoredKey: (key: Key, hash: UInt64)] = [:]
        var order: [StoredKey] = []
        for key in keys {
            let stored = try stored(key)
            if wanted.updateValue((key, copies.seed.hash(key)), forKey: stored) == nil { order.append(stored) }
        }
        let now = rows.store.time.now()
        let items = order.compactMap { wanted[$0] }
        let (found, tickets) = copies.state.withLock { state in
            (state.values(items, now: now), items.map { state.ticket($0.hash) })
        }
        if let found, !found.isEmpty { return Dictionary(zip(items.lazy.map { $0.key }, found)) { first, _ in first } }
        let offers = Dictionary(uniqueKeysWithValues: zip(order, tickets))
        let rows = try throwing("read values") { () throws(StoreError) in try self.rows.rows(order) }
        var values: [Key: Value] = [:]
        for row in rows where row.header.end >= now {
            guard let (key, hash) = wanted[row.header.key], let ticket = offers[row.header.key] else { continue }
            let value: Value
            // The other values are as good.
            do throws(CacheError) { value = try decode(row) } catch { continue }
            offer(value, of: row, key, hash, at: now, ticket)
            values[key] = value
        }
        let missing = order.count - values.count
        copies.count { $0.misses += missing }
        return values
    }
}

extension Cache {
    /// Runs a read that may wait for the disk, on a thread that may.
    ///
    /// At the top level of a `main.swift`, the compiler chooses the synchronous forms of reads even with `await`.
    func reading<R: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () throws(Failure) -> R
    ) async throws(Failure) -> R {
        guard let trace = rows.store.trace else { return try await queued(work) }
        let start = SystemClock.nanoseconds()
        return try await queued { [name] () throws(Failure) in
            trace.note("wait for a thread that reads", name, nil, .disk, .done, since: start)
            return try work()
        }
    }

    private func queued<R: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () throws(Failure) -> R
    ) async throws(Failure) -> R {
        // A read of a store in memory waits for the writer, so it would hold one of the few threads.
        rows.store.path == nil ? try await offload(work) : try await ReadQueue.run(work)
    }
}
