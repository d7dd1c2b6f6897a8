public import Foundation
internal import LarderLocks
internal import LarderStore

extension MemoryCache where Key: Codable, Value: Codable {
    /// Writes all entries to a file, which is replaced in one step: a reader finds the old contents or the new ones.
    ///
    /// Costs, ages and the order of use are kept; expired entries are left out. An entry that cannot be encoded is
    /// left out too: the others are written, and then the call throws `.encodingFailed` with the first keys in its
    /// message. A process that dies during the call leaves a hidden file next to it, which a save to the same file
    /// deletes when it is an hour old.
    ///
    /// - Complexity: O(n) under the lock; encoding runs outside it.
    public func save(to url: URL) throws(CacheError) {
        // Taken before the entries are listed: what has a greater number is at least as new.
        let number = lastSave.add(1, ordering: .sequentiallyConsistent).newValue
        let coder = SnapshotCoder<Key, Value>()
        var failures: [String] = []
        var bytes = try coder.start(of: url)
        let age: Int64? =
            switch rule {
            case .sinceWrite(let age), .sinceAccess(let age): age
            case .unlimited, .until: nil
            }
        let items = listed { state, index in
            SnapshotItem(
                key: state.table.key(at: index), value: state.table.value(at: index), cost: state.cost(of: index),
                start: age.map { state.ends[Int(index)].subtractingSaturated($0) }, own: state.ownAge(of: index))
        }
        for item in items {
            do { try coder.append(item, to: &bytes) } catch { failures.append("\(item.key) (\(error))") }
        }
        try snapshots.withLock { saved throws(CacheError) in
            let path = SnapshotFile.path(of: url)
            if saved[path, default: 0] > number { return }
            try SnapshotFile.replace(url, with: bytes)
            saved[path] = number
        }
        guard failures.isEmpty else {
            let named = failures.prefix(20).joined(separator: ", ") + (failures.count > 20 ? ", …" : "")
            throw CacheError(
                .encodingFailed,
                "\(failures.count) entries of the memory cache cannot be encoded and are not in the snapshot "
                    + "\(url.path): \(named). Everything else was saved.")
        }
    }

    /// Adds the entries of a snapshot to the cache, and returns the number of added entries.
    ///
    /// Entries that the limits did not keep are not counted.
    ///
    /// Loaded entries replace those of the same key, become the most recently used ones in the order they had, and
    /// keep their age. Expired entries are left out, and the limits apply as in every set. An item that
    /// does not decode is left out and reported. If an item is damaged, those after it are left out too.
    ///
    /// - Parameters:
    ///   - url: A file that `save(to:)` of a cache with the same types has written; else the call throws.
    ///   - skipped: Called with one sentence for each item that was left out because it cannot be read.
    @discardableResult
    public func load(from url: URL, skipped: ((String) -> Void)? = nil) throws(CacheError) -> Int {
        try load(from: url, replaces: true, skipped ?? { _ in })
    }

    /// - Parameter replaces: A Boolean value that indicates whether loaded entries displace others; if not, those are left out
    ///   whose keys have an entry, and those for which there is no room.
    func load(from url: URL, replaces: Bool, _ skipped: (String) -> Void) throws(CacheError) -> Int {
        let coder = SnapshotCoder<Key, Value>()
        let data: Data
        do {
            data = try Data(contentsOf: url)
        } catch {
            throw CacheError(
                .storageUnavailable,
                "The snapshot \(url.path) cannot be read. Check that it exists and its permissions.",
                underlying: error)
        }
        var count = 0
        try coder.forEachItem(in: data, of: url, skipped: skipped) { if add($0, replaces: replaces) { count += 1 } }
        noteSnapshot(url)
        // The loaded entries are the most recent ones: if fewer are left, the later ones evicted the earlier ones.
        return Swift.min(count, self.count)
    }

    /// Sets a loaded item, unless it has expired or costs too much.
    private func add(_ item: SnapshotItem<Key, Value>, replaces: Bool) -> Bool {
        if item.own != nil { hasOwnAges.store(true, ordering: .relaxed) }
        let now = now()
        let start = Swift.min(item.start ?? now, now)
        let end = item.own?.end ?? (rule.isUnlimited ? nil : rule.end(writtenAt: start, accessedAt: start))
        if let end, now > end { return false }
        let cost = BoundedTable<Key, Value>.clamped(item.cost)
        let bytes =
            BoundedTable<Key, Value>.bytes(of: item.key, cost: cost) + (item.own == nil ? 0 : 2 * EntryBytes.ofEnd)
        let hash = seed.hash(item.key)
        var discards: [LRUTable<Key, Value>.Node] = []
        let (displaced, isKept) = state.withLock { state -> (Displaced<Key, Value>?, Bool) in
            let isKept = state.admits(cost: cost, bytes: bytes)
            if !replaces {
                let isFree = state.table.locate(item.key, hash: hash) == 0
                guard isKept, isFree, !state.needsRoom(for: cost, EntryBytes.units(bytes)) else { return (nil, false) }
            }
            if item.own != nil { state.isFollowed = true }
            let displaced = state.setValue(
                item.value, forKey: item.key, hash: hash, cost: cost, bytes: bytes, end: end, age: item.own?.age,
                into: &discards)
            return (displaced, isKept)
        }
        guard let displaced else { return false }
        if isKept, let end { noteEnd(end) }
        tellWrites(of: CollectionOfOne(item.key), CollectionOfOne(displaced), evicted: discards)
        return isKept
    }
}

extension BoundedTable {
    /// Returns the age of an entry that it has in place of the cache's; nil if it has none.
    func ownAge(of index: UInt32) -> OwnAge? {
        guard Int(index) < ages.count, ages[Int(index)] != usualAge else { return nil }
        return OwnAge(end: ends[Int(index)], age: ages[Int(index)])
    }
}
