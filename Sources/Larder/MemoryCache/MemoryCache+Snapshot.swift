public import Foundation
internal import LarderLocks

extension MemoryCache where Key: Codable, Value: Codable {
    /// Writes all entries to a file, which is replaced in one step: a reader finds the old contents or the new ones.
    ///
    /// Costs, ages and the order of use are kept; expired entries are left out. An entry that cannot be encoded is
    /// left out too: the others are written, and then the call throws `.encodingFailed` with the first keys in its
    /// message. A process that dies during the call leaves a hidden file next to it, which the next save to the same
    /// file deletes.
    ///
    /// - Complexity: O(n), in batches under the lock; encoding runs outside it.
    public func save(to url: URL) throws(CacheError) {
        let coder = SnapshotCoder<Key, Value>()
        let file = try SnapshotFile(replacing: url)
        var failures: [String] = []
        try file.write(try coder.start(of: url))
        try forEachItem { item throws(CacheError) in
            let record: Data
            do {
                record = try coder.record(of: item)
            } catch {
                failures.append("\(item.key) (\(error))")
                return
            }
            try file.write(record)
        }
        try file.commit()
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
    /// keep their age. Expired entries are left out, and the limits apply as in every set. An item that is damaged or
    /// does not decode is left out and reported; the others are loaded.
    ///
    /// - Parameters:
    ///   - url: A file that `save(to:)` of a cache with the same types has written; else the call throws.
    ///   - skipped: Called with one sentence for each item that was left out because it cannot be read.
    @discardableResult
    public func load(from url: URL, skipped: ((String) -> Void)? = nil) throws(CacheError) -> Int {
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
        let now = rule.needsStart || !rule.isUnlimited ? exactNow() : 0
        var count = 0
        let end = data.withUnsafeBytes { bytes in
            Result { () throws(CacheError) in
                try coder.forEachItem(in: bytes, of: url) { result in
                    switch result {
                    case .success(let item): if add(item, now: now) { count += 1 }
                    case .failure(let failure): skipped?("A part of the snapshot \(url.path) was skipped: \(failure)")
                    }
                }
            }
        }
        try end.get()
        // The loaded entries are the most recent ones: if fewer are left, the later ones evicted the earlier ones.
        return Swift.min(count, self.count)
    }

    private func forEachItem(_ body: (SnapshotItem<Key, Value>) throws(CacheError) -> Void) throws(CacheError) {
        let walk = MemoryWalk(self)
        let now = rule.isUnlimited ? 0 : exactNow()
        for slice in walk.slices(of: Self.entriesPerSlice) {
            var items: [SnapshotItem<Key, Value>] = []
            state.withLock { state in
                for index in slice where state.isServed(index, in: walk.identifier, rule: rule, now: now) {
                    items.append(
                        SnapshotItem(
                            key: state.table.key(at: index), value: state.table.value(at: index),
                            cost: state.cost(of: index),
                            start: rule.needsStart ? state.starts[Int(index)] : nil))
                }
            }
            for item in items { try body(item) }
        }
    }

    /// Sets a loaded item, unless it has expired or costs too much.
    private func add(_ item: SnapshotItem<Key, Value>, now: Int64) -> Bool {
        let start = rule.corrected(item.start ?? now, now: now)
        if !rule.isUnlimited && rule.isExpired(start: start, now: now) { return false }
        let cost = MemoryCacheState<Key, Value>.clamped(item.cost)
        let hash = seed.hash(item.key)
        var discards: [LRUTable<Key, Value>.Node] = []
        let (displaced, isKept) = state.withLock { state in
            let bytes = MemoryCacheState<Key, Value>.bytes(of: item.key, cost: cost)
            let isKept = state.admits(cost: cost, bytes: bytes)
            let displaced = state.setValue(
                item.value, forKey: item.key, hash: hash, cost: cost, bytes: bytes,
                start: rule.needsStart ? start : nil, into: &discards)
            return (displaced, isKept)
        }
        _ = consume displaced
        if expiry != nil, isKept { noteStart(start) }
        return isKept
    }
}
