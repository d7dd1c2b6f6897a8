internal import LarderLocks
internal import LarderStore

/// What the latest open of a cache has set.
struct CacheSettings: Sendable {
    var maxAge: MaxAge
    var disk: DiskLimits
    var clearsOnMemoryPressure: Bool
    var background: BackgroundWatcher?
}

/// What the handles on one cache of a manager share: the copies in memory, and what the latest open has set.
///
/// It lives as long as one of the handles.
@usableFromInline
final class CacheCore<Key: Codable & Hashable & Sendable, Value: Sendable>: AnyCacheCore, PressureResponder {
    @usableFromInline let copies: TierStorage<Key, Value>
    @usableFromInline let keyCodec = KeyCodec<Key>()
    /// A Boolean value that indicates whether a shared cache is open on it.
    let isShared = Atomic(false)
    /// What calls for many keys know of the time for which the store keeps expired entries.
    let staleWindow = StaleWindow()
    /// Opens once memory has what it had used last.
    let warmth: Gate
    private let rows: CacheRows
    private let reporter: Reporter

    init(_ rows: CacheRows, _ options: CacheOptions, _ maxAge: MaxAge, _ manager: CacheManager, at now: Int64) {
        (self.rows, reporter, warmth) = (rows, manager.reporter, Gate(isOpen: options.warms == nil))
        let settings = CacheSettings(
            maxAge: maxAge, disk: DiskLimits(rows.limits), clearsOnMemoryPressure: options.clearsOnMemoryPressure)
        copies = TierStorage(
            options.memory ?? MemoryLimits(), settings, name: rows.declaration.name, store: rows.store,
            foreign: manager.foreign, isSystemTime: manager.injectedClock == nil, accessGrain: rows.accessGrain,
            remembersRemovals: options.remembersRemovals, now: now)
        rows.attach(copies)
        copies.setWarms(options.warms)
        PressureWatcher.ofProcess.add(self)
        watchBackground(options.clearsInBackground)
    }

    deinit {
        PressureWatcher.ofProcess.remove(ObjectIdentifier(self))
        rows.detach(copies)
        if let recent = copies.takeRecentIDs() { rows.noteRecent(recent) }
        rows.store.accesses.note(servedByMemory: copies.takeAccesses(at: .min))
    }

    var types: (key: String, value: String) { ("\(Key.self)", "\(Value.self)") }

    var current: CacheSettings { copies.state.withLock { $0.settings } }

    func change(_ body: @Sendable (inout CacheSettings) -> Void) { copies.state.withLock { body(&$0.settings) } }

    /// Takes over what another open of the cache has set, and notes it in the log.
    func declare(_ options: CacheOptions, _ maxAge: MaxAge, _ rows: CacheRows) {
        let (old, disk) = (current, DiskLimits(rows.limits))
        change {
            ($0.maxAge, $0.disk) = (maxAge, disk)
            $0.clearsOnMemoryPressure = options.clearsOnMemoryPressure
        }
        var changes: [String] = []
        if old.maxAge != maxAge { changes.append("the maximum age from \(old.maxAge) to \(maxAge)") }
        if old.disk != disk { changes.append("the limits on disk from \(old.disk.text) to \(disk.text)") }
        copies.state.withLock { $0.accessGrain = rows.accessGrain }
        if options.warms != nil { copies.setWarms(options.warms) }
        if let memory = options.memory {
            let limits = copies.state.withLock { $0.limits }
            if limits != memory.counted {
                changes.append("the limits in memory from \(limits.text) to \(memory.counted.text)")
                copies.limit { $0 = memory }
            }
        }
        watchBackground(options.clearsInBackground)
        if changes.isEmpty { return }
        let name = rows.declaration.name
        reporter.note(
            LogMessage(
                .info, "The cache \"\(name)\" is open, and another open has changed \(changes.joined(separator: ", "))."
            ))
    }

    /// Gives memory back, unless the options say that pressure does not concern the cache.
    @usableFromInline
    func handleMemoryPressure(_ level: MemoryPressure) {
        if current.clearsOnMemoryPressure { giveBack(level) }
    }

    private func giveBack(_ level: MemoryPressure) {
        switch level {
        case .warning:
            let (count, cost, bytes) = copies.state.withLock {
                ($0.memory.table.count, $0.memory.totalCost, $0.memory.totalBytes)
            }
            copies.trim { $0.table.count > count / 2 || $0.totalCost > cost.half || $0.totalBytes > bytes.half }
        case .critical: copies.trim { _ in true }
        }
        let name = rows.declaration.name
        let message = "Memory of the cache \"\(name)\" was given back (\(level))."
        reporter.report(CacheEvent(.memoryPressure(level), cacheName: name, message: message), .info)
    }

    /// Removes everything from memory when the app goes into the background, or no longer.
    private func watchBackground(_ isWanted: Bool) {
        let watcher = isWanted ? BackgroundWatcher { [weak self] in self?.giveBack(.critical) } : nil
        let old = copies.state.withLock { state in
            defer { state.settings.background = watcher }
            return state.settings.background
        }
        _ = consume old
    }

    func wasCleared() {
        copies.cleared(isRemoved: true)
        staleWindow.reset()
    }

    func wasResumed() { copies.noteForeign() }

    func wasClosed() { copies.cleared(isClosed: true) }

    func streamsToEnd() -> @Sendable () -> Void {
        let (changes, streams) = (copies.changes, copies.changes.streams)
        return {
            for stream in streams { stream.finish() }
            changes.stopLooks()
        }
    }
}

/// An open cache of any types.
protocol AnyCacheCore: AnyObject, Sendable {
    /// The names of the types of keys and values.
    var types: (key: String, value: String) { get }
    func handleMemoryPressure(_ level: MemoryPressure)
    /// Tells streams that others may have changed everything.
    func wasResumed()
    /// Called after the cache was cleared, removed or opened under another version.
    func wasCleared()
    /// Called after the store was closed.
    func wasClosed()
    /// Returns a closure that ends the streams of changes that there are now, once what is pending was taken.
    ///
    /// It takes a leaf lock alone.
    func streamsToEnd() -> @Sendable () -> Void
}
