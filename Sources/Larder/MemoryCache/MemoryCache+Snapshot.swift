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
            case .sinceWrite(let age), .sinceAccess(let age), .jittered(let age, _): age
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
        let end =
            item.own?.end ?? (rule.isUnlimited ? nil : rule.drawn.end(writtenAt: start, accessedAt: start, id: 0))
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
        reportWrites(of: CollectionOfOne(item.key), CollectionOfOne(displaced), evicted: discards)
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

/// Saving and loading for tasks: neither blocks the caller's executor.
extension MemoryCache where Key: Codable, Value: Codable {
    /// Writes every entry into a file, which is replaced in one step.
    public func save(to url: URL) async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.save(to: url) }
    }

    /// Adds the entries of a file that `save(to:)` has written.
    ///
    /// - Parameters:
    ///   - url: A file that `save(to:)` of a cache with the same types has written; else the call throws.
    ///   - skipped: Called with one sentence for each item that was left out because it cannot be read.
    @discardableResult
    public func load(
        from url: URL, skipped: (@Sendable (String) -> Void)? = nil
    ) async throws(CacheError) -> Int {
        try await offload { () throws(CacheError) in try self.load(from: url, skipped: skipped) }
    }

    /// Creates a cache with the entries of a snapshot, or an empty cache if there is no such file.
    ///
    /// ```swift
    /// let sessions = try MemoryCache<String, Session>(restoring: file, countLimit: 1_000)
    /// ```
    ///
    /// Every parameter but the first and the last is that of the plain initializer.
    ///
    /// - Parameters:
    ///   - url: A file that `save(to:)` of a cache with the same types has written.
    ///   - countLimit: The maximum number of entries. By default there is no limit.
    ///   - costLimit: The maximum total cost of the entries. By default there is no limit.
    ///   - byteLimit: The maximum number of bytes that the entries take; nil for any.
    ///   - maxAge: The maximum age of an entry, counted from when it was set in the other cache.
    ///   - clearsOnMemoryPressure: A Boolean value that indicates whether the cache follows the system's memory pressure.
    ///   - pressureResponse: What a warning removes.
    ///   - clearsInBackground: A Boolean value that indicates whether the cache is emptied when the app goes into the background.
    ///   - clock: Called by each call that needs the time; nil for the system's clock.
    ///   - onRemoval: Called once for each value that leaves.
    ///   - onEvent: Gets what no call can report.
    ///   - skipped: Called with a sentence about each entry that could not be read.
    /// - Throws: `.foreignFile`, `.typeMismatch` or `.newerSchema` if the file is not such a snapshot.
    ///   `.storageUnavailable` if the file exists and cannot be read.
    public convenience init(
        restoring url: URL, countLimit: Int = .max, costLimit: Int = .max, byteLimit: Int? = nil,
        maxAge: MaxAge = .unlimited, clearsOnMemoryPressure: Bool = true, pressureResponse: PressureResponse = .half,
        clearsInBackground: Bool = false, clock: (@Sendable () -> Date)? = nil, onRemoval: OnRemoval? = nil,
        onEvent: OnEvent? = nil, skipped: ((String) -> Void)? = nil
    ) throws(CacheError) {
        self.init(
            countLimit: countLimit, costLimit: costLimit, byteLimit: byteLimit ?? .max, maxAge: maxAge,
            clearsOnMemoryPressure: clearsOnMemoryPressure, pressureResponse: pressureResponse,
            clearsInBackground: clearsInBackground, clock: clock, onRemoval: onRemoval,
            onEvent: onEvent)
        try loadIfPresent(from: url, replaces: true, skipped ?? { _ in })
    }

    /// Creates a cache with the entries of a snapshot, or an empty cache if there is no such file.
    ///
    /// The file is read off the cooperative pool. The parameters are those of the synchronous form.
    public convenience init(
        restoring url: URL, countLimit: Int = .max, costLimit: Int = .max, byteLimit: Int? = nil,
        maxAge: MaxAge = .unlimited, clearsOnMemoryPressure: Bool = true, pressureResponse: PressureResponse = .half,
        clearsInBackground: Bool = false, clock: (@Sendable () -> Date)? = nil, onRemoval: OnRemoval? = nil,
        onEvent: OnEvent? = nil, skipped: (@Sendable (String) -> Void)? = nil
    ) async throws(CacheError) {
        self.init(
            countLimit: countLimit, costLimit: costLimit, byteLimit: byteLimit ?? .max, maxAge: maxAge,
            clearsOnMemoryPressure: clearsOnMemoryPressure, pressureResponse: pressureResponse,
            clearsInBackground: clearsInBackground, clock: clock, onRemoval: onRemoval,
            onEvent: onEvent)
        try await offload { () throws(CacheError) in
            try self.loadIfPresent(from: url, replaces: true, skipped ?? { _ in })
        }
    }

    /// Adds the entries of a snapshot, if there is one.
    func loadIfPresent(from url: URL, replaces: Bool, _ skipped: (String) -> Void) throws(CacheError) {
        do throws(CacheError) {
            _ = try load(from: url, replaces: replaces, skipped)
        } catch  where (error.underlying as? CocoaError)?.code == .fileReadNoSuchFile {
            // Nothing was saved yet.
            noteSnapshot(url)
        }
    }

    /// Notes that the entries of a snapshot were added, so that it may be overwritten.
    func noteSnapshot(_ url: URL) {
        snapshots.withLock { $0[SnapshotFile.path(of: url), default: 0] += 0 }
    }

    /// Writes a snapshot in the background after an interval, and then whenever something has changed, at most once an interval.
    ///
    /// The file is replaced in one step, as by `save(to:)`. If the cache has neither loaded nor saved this file before, the call
    /// first adds the entries of the file, without those whose keys have a value here, and those for which there is no room: so
    /// an autosave that begins before a restore loses nothing. If the file cannot be read, or is no snapshot of these types, it
    /// is not overwritten: each save fails until it is deleted. A save that fails is an event of the kind ``CacheEvent/Kind/writeFailed``, and
    /// tried again after an interval.
    ///
    /// Changes of the last interval are lost when the program ends, unless it calls `saveNow()`.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - interval: The minimum time between two saves, at least a millisecond.
    /// - Returns: The task, which keeps the cache alive, and ends when it is cancelled or released.
    public func autosave(to url: URL, every interval: Duration) -> AutosaveTask {
        state.withLock { $0.isFollowed = true }
        let stream = ChangeStream<Key, Value>(
            every: Swift.max(interval, .milliseconds(1)), delaysFirst: true, timekeeper: timekeeper
        ) { _ in [:] }
        let subscription = hub.subscribe(stream)
        let obstacle = addSaved(url)
        let save: @Sendable () throws(CacheError) -> Void = { () throws(CacheError) in
            if let obstacle, SnapshotFile.mayExist(url), !self.knows(url) { throw obstacle }
            try self.save(to: url)
        }
        let task = Task {
            while await subscription.stream.next() != nil {
                do throws(CacheError) {
                    try await offload(save)
                } catch {
                    report(.writeFailed, error.message, .error, error)
                    // What cannot be encoded is as it was at the next try.
                    if error.code != .encodingFailed { _ = subscription.stream.noteReset() }
                }
            }
        }
        // What is there now is a change since the last save, if there was one.
        _ = stream.noteReset()
        return AutosaveTask(save: save) {
            stream.cancel()
            task.cancel()
        }
    }

    /// Writes a snapshot in the background whenever something has changed, at most once an interval.
    ///
    /// What the file has is read off the cooperative pool.
    public func autosave(to url: URL, every interval: Duration) async -> AutosaveTask {
        await offload { self.autosave(to: url, every: interval) }
    }

    /// Adds the entries of a snapshot that displace nothing, unless the cache has loaded or saved this file before.
    ///
    /// - Returns: The reason for which the file must not be overwritten.
    private func addSaved(_ url: URL) -> CacheError? {
        if knows(url) { return nil }
        do throws(CacheError) {
            try loadIfPresent(from: url, replaces: false) { report(.undecodable, $0, .warning) }
            return nil
        } catch {
            return error
        }
    }

    private func knows(_ url: URL) -> Bool { snapshots.withLock { $0[SnapshotFile.path(of: url)] != nil } }
}

/// The saves of a memory cache in the background, until the task is cancelled or released.
public final class AutosaveTask: Sendable {
    private let save: @Sendable () throws(CacheError) -> Void
    private let end: @Sendable () -> Void

    init(save: @escaping @Sendable () throws(CacheError) -> Void, cancel: @escaping @Sendable () -> Void) {
        (self.save, end) = (save, cancel)
    }

    deinit { end() }

    /// Saves on this thread, whether something has changed or not; for a program that ends.
    public func saveNow() throws(CacheError) { try save() }

    /// Saves off the cooperative pool, whether something has changed or not.
    public func saveNow() async throws(CacheError) { try await offload(save) }

    /// Ends the saves in the background.
    ///
    /// One that is running finishes.
    public func cancel() { end() }
}
