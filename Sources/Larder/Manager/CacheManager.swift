public import Foundation
internal import LarderSQLite
public import Synchronization

/// Owns one database and the sub-caches in it.
///
/// A manager may be used from any thread. Managers on one path in one process share one store; several processes may use
/// one file at the same time.
public final class CacheManager: Sendable {
    /// The database's file; nil for a store in memory.
    public let url: URL?

    private let configuration: Configuration
    private let hub: EventHub
    private let lease: Mutex<StoreLease?>
    private let stopListening: Mutex<(@Sendable () -> Void)?> = Mutex(nil)
    @usableFromInline let closed = Atomic(false)

    /// Where its sub-caches report.
    let reporter: Reporter

    /// Whether it was given back; hits in memory ask too.
    @inlinable var isClosed: Bool { closed.load(ordering: .relaxed) }

    /// The clock that the configuration brought, or nil for the system's.
    var injectedClock: (@Sendable () -> Date)? { configuration.injectedClock }

    /// Whether this manager may not change anything.
    var isReadOnly: Bool { configuration.access == .readOnly }

    /// Opens the store `<caches directory>/<name>.sqlite`, and makes it if it is missing.
    ///
    /// The caches directory is the user's: on Linux `$XDG_CACHE_HOME`, else `~/.cache`.
    public convenience init(name: String, configuration: Configuration = .init()) throws(CacheError) {
        try StoreLocation.check(name: name)
        let path = try CachesFolder.path() + "/" + name + ".sqlite"
        try self.init(url: URL(fileURLWithPath: path), configuration: configuration)
    }

    /// Opens the store in the file at `url`, and makes it and its folder if they are missing.
    public init(url: URL, configuration: Configuration = .init()) throws(CacheError) {
        guard url.isFileURL else {
            throw CacheError(.invalidConfiguration, "a store needs a file URL, and \(url) is none")
        }
        let settings = try configuration.openingSettings()
        let policy = try configuration.storePolicy()
        let location = try StoreLocation(
            path: url.absoluteURL.standardizedFileURL.path, makesFolder: settings.access == .readWrite)
        self.url = URL(fileURLWithPath: location.path)
        self.configuration = configuration
        hub = EventHub()
        reporter = Reporter(hub: hub, log: configuration.log)
        let opener = StoreOpener(location: location, settings: settings, timekeeper: configuration.timekeeper)
        lease = Mutex(
            try StoreRegistry.shared.acquire(location, settings.access) { () throws(CacheError) in
                try Store(
                    opening: opener, timekeeper: configuration.timekeeper, policy: policy)
            })
        #if canImport(Darwin)
        if let protection = configuration.fileProtection, configuration.access == .readWrite {
            try FileProtection.protect(location, protection)
        }
        #endif
        listen()
    }

    private init(memory configuration: Configuration) throws(CacheError) {
        let settings = try configuration.openingSettings()
        url = nil
        self.configuration = configuration
        hub = EventHub()
        reporter = Reporter(hub: hub, log: configuration.log)
        let store = try Store(
            opening: MemoryOpener(settings: settings), timekeeper: configuration.timekeeper,
            policy: try configuration.storePolicy())
        lease = Mutex(StoreLease(store: store) { store.close() })
        listen()
    }

    /// Opens a store that lives in memory, writes no file, and shares nothing with another.
    public static func inMemory(configuration: Configuration = .init()) throws(CacheError) -> CacheManager {
        try CacheManager(memory: configuration)
    }

    deinit {
        end()
    }

    /// What happens to the store by itself: evictions, recoveries, failures that no call could report.
    ///
    /// Each access makes a stream of its own. The newest 1,000 events wait for a reader; ``CacheEvent/lostBefore`` counts
    /// what went lost. The first stream begins with what happened before it.
    public var events: AsyncStream<CacheEvent> { hub.stream() }

    /// Gives the store back: what runs is finished, later calls throw ``CacheError/Code/closed``.
    ///
    /// Closing twice is harmless. Other managers on the same path go on working.
    public func close() throws(CacheError) {
        end()
    }

    /// Gives the store back without blocking the caller's executor; see the synchronous form.
    public func close() async throws(CacheError) {
        try await offload { () throws(CacheError) in self.end() }
    }

    private func end() {
        if !closed.exchange(true, ordering: .relaxed) { flushBeforeEnd() }
        for ledger in liveLedgers ?? [] { ledger.front?.end(for: ObjectIdentifier(self), reporter) }
        let stop = stopListening.withLock { $0.take() }
        let lease = lease.withLock { $0.take() }
        if let notice = lease?.end() { Self.tell(notice, reporter) }
        stop?()
        hub.finish()
    }
}

extension CacheManager {
    /// Writes down now which entries were read, as far as ``CacheOptions/accessGrain`` asks for it.
    ///
    /// It does not wait for the disk; ``CacheManager/Configuration/durability`` decides what survives a loss of power.
    public func flush() throws(CacheError) {
        let store = try writableStore()
        try store.inside.refuseCurrent("flush")
        try store.flushUses()
    }

    /// Writes down what is noted in memory, without blocking the caller's executor; see the synchronous form.
    public func flush() async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.flush() }
    }

    private func flushBeforeEnd() {
        guard !isReadOnly, let store = lease.withLock({ $0 })?.store, !store.inside.containCurrent else { return }
        for cache in store.live.all {
            do throws(CacheError) {
                try cache.flushUses()
            } catch {
                // An order of use is not worth a failed closing; who is interested reads of it.
                reporter.note(LogMessage(.warning, "Access times could not be written down at the end.", error: error))
            }
        }
    }

    /// The store, to read from.
    package func store() throws(CacheError) -> Store {
        if let lease = lease.withLock({ $0 }) { return lease.store }
        throw CacheError(.closed, "the manager of \(url?.path ?? "a store in memory") was closed; open a new one")
    }

    /// The sub-caches in use; nil once this is closed.
    var liveLedgers: [RowLedger]? { lease.withLock { $0 }?.store.live.everyone }

    /// The store, to write to.
    package func writableStore() throws(CacheError) -> Store {
        let store = try store()
        guard configuration.access == .readWrite else {
            throw CacheError(
                .readOnly, "\(url?.path ?? "the store") was opened read-only; open it with `.readWrite` to change it")
        }
        return store
    }

    private func listen() {
        guard let store = lease.withLock({ $0 })?.store else { return }
        let stop = store.listen { [reporter] in Self.tell($0, reporter) }
        stopListening.withLock { $0 = stop }
        store.tellUntold()
    }

    private static func tell(_ notice: StoreNotice, _ reporter: Reporter) {
        switch notice {
        case .setAside(let path, let reason):
            let text = "The store was replaced because \(reason). The original is at \(path)."
            reporter.report(CacheEvent(.recovered(setAside: URL(fileURLWithPath: path)), message: text), .warning)
        case .reopened(let path):
            let text = "\(path) was moved, replaced or deleted by somebody else, and was opened again."
            reporter.note(LogMessage(.warning, text))
        case .backgroundFailure(let error):
            reporter.note(LogMessage(.error, "Work in the background failed and will be tried again.", error: error))
        }
    }
}
