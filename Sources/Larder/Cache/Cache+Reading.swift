public import Foundation
internal import LarderLocks
internal import LarderSQLite
internal import LarderStore

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

    /// Returns the entry on the disk with its row, also if it has expired; one that has not is kept in memory.
    func storedEntry(_ key: Key) throws(CacheError) -> (entry: CacheEntry<Key, Value>, row: RowStamp)? {
        let (stored, hash, now) = (try stored(key), copies.seed.hash(key), rows.now())
        let ticket = copies.state.withLock { $0.ticket(hash) }
        guard let row = try rows.currentRow(stored) else { return nil }
        let (value, isExpired) = (try decode(row), row.header.end < now)
        if !isExpired { take(value, of: row, key, hash, at: now, ticket) }
        return (CacheEntry(key, value, row.header, isExpired: isExpired), row.header.stamp)
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

    /// Returns the bytes that are stored with a value; nil if there are none, or no value that may be served.
    ///
    /// The read doesn't count as access.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``.
    public func extendedData(forKey key: Key) throws(CacheError) -> Data? {
        try liveHeader(key)?.meta.extendedData
    }

    /// Returns whether a key has a value that may be served, without decoding the value.
    ///
    /// The look-up doesn't count as access. A value that does not decode counts until its row is deleted.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``.
    public func contains(_ key: Key) throws(CacheError) -> Bool { try liveHeader(key) != nil }

    /// Returns the values of the given keys that have one, at one moment.
    ///
    /// Each value that is returned counts as accessed. A value that does not decode is left out, and an event reports
    /// it.
    ///
    /// - Parameter keys: The keys.
    /// - Throws: A read error, see ``CacheError``.
    public func values(forKeys keys: some Sequence<Key>) throws(CacheError) -> [Key: Value] { try find(Array(keys)) }

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

    /// The counters of the cache since it was opened by this manager, or since ``resetStatistics()``.
    public var statistics: CacheStatistics {
        CacheStatistics(copies.state.withLock { $0.counts.since($0.resetCounts) })
    }

    /// Sets the counters of ``statistics`` to zero.
    public func resetStatistics() { copies.state.withLock { $0.resetCounts = $0.counts } }
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
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``.
    public func fileURL(forKey key: Key) async throws(CacheError) -> URL? {
        try await reading { () throws(CacheError) in try self.fileURL(forKey: key) }
    }
}
