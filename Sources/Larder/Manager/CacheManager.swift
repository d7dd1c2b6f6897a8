public import Foundation
internal import LarderLocks
package import LarderStore

/// Owns one database and the caches in it.
///
/// A manager may be used from any thread. Use one manager for each file and share it: two managers on one path, in one
/// process or in two, each have their own memory and loads, and see what the other has committed.
public final class CacheManager: Sendable {
    /// The file of the database; nil for a store in memory.
    public let url: URL?

    package let store: Store
    private let configuration: Configuration
    let reporter: Reporter
    /// What streams of all caches know of other stores.
    let foreign: ForeignCommits
    let evictions: EvictionTimers
    private let openCaches = Mutex(OpenCaches())
    let isSuspensionReported = Atomic(false)
    let suspension = Mutex(SuspensionState())
    #if canImport(Darwin)
    let backgroundWatchers = Mutex<[BackgroundWatcher]>([])
    let isInBackground = Atomic(false)
    #endif

    var injectedClock: (@Sendable () -> Date)? { configuration.injectedClock }
    var timekeeper: Timekeeper { configuration.timekeeper }

    /// Opens the store `<caches directory>/<name>.sqlite`, and creates it if it is missing.
    ///
    /// The caches directory is the user's: on Linux `$XDG_CACHE_HOME`, or else `~/.cache`.
    ///
    /// - Parameters:
    ///   - name: The name of the store, without a slash or NUL.
    ///   - priming: A store of which a missing one begins as a copy, see ``init(url:priming:configuration:)``.
    ///   - configuration: The options of the store.
    /// - Throws: An opening error, see ``CacheError``.
    public convenience init(
        name: String, priming: URL? = nil, configuration: Configuration = .init()
    ) throws(CacheError) {
        let url = URL(fileURLWithPath: try StorePath.path(named: name))
        try self.init(url: url, priming: priming, configuration: configuration)
    }

    /// Opens the store in a file, and creates it and its folder if they are missing.
    ///
    /// A missing store can begin as a copy of another one, for example of one in the app's bundle that `larder bake` has made. It
    /// is brought to the form of this release. Ages count from when the entries were written. If the other one is missing or damaged, of
    /// a later release, or has a part in its log, or if the disk is full, the store begins empty, and
    /// ``CacheEvent/Kind/notPrimed(_:)`` reports it. Each program that may open the store first has to name it.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - priming: A store of which a missing one begins as a copy, with its value files next to it; no manager of this process may
    ///     have it open, and nothing may write to it. Nil for an empty beginning.
    ///   - configuration: The options of the store.
    /// - Throws: An opening error, see ``CacheError``. `.invalidConfiguration` for `priming` with read-only access.
    public convenience init(
        url: URL, priming: URL? = nil, configuration: Configuration = .init()
    ) throws(CacheError) {
        let path = try StorePath.path(of: url)
        let primingPath = try priming.map { url throws(CacheError) in
            // Its value files are next to the file itself.
            try StorePath.path(of: url.resolvingSymlinksInPath())
        }
        if primingPath != nil && configuration.access == .readOnly {
            throw CacheError(
                .invalidConfiguration, "A store that is only read cannot begin as a copy. Leave out `priming`.")
        }
        try self.init(URL(fileURLWithPath: path), configuration) { options throws(StoreError) in
            var options = options
            options.primingPath = primingPath
            return try Store.open(path, options)
        }
        #if canImport(Darwin)
        let isShared = path.contains("/Containers/Shared/AppGroup/")
        if configuration.suspendsInBackground ?? isShared { suspendInBackground() }
        #endif
    }

    /// Opens a store that lives in memory, writes no file, and shares nothing with another one.
    ///
    /// - Parameter configuration: The options of the store.
    /// - Throws: `.invalidConfiguration`.
    public static func inMemory(configuration: Configuration = .init()) throws(CacheError) -> CacheManager {
        try CacheManager(nil, configuration) { options throws(StoreError) in try Store.inMemory(options) }
    }

    private init(
        _ url: URL?, _ configuration: Configuration, open: (Store.Options) throws(StoreError) -> Store
    ) throws(CacheError) {
        try configuration.check()
        (self.url, self.configuration) = (url, configuration)
        let reporter = Reporter(hub: EventHub(), log: configuration.ownLog)
        self.reporter = reporter
        do throws(StoreError) {
            store = try open(configuration.storeOptions { reporter.report($0) })
            let limits = StoreLimits(size: configuration.sizeLimit, freeSpace: configuration.freeSpaceFloor)
            if configuration.access == .readWrite { try store.setLimits(limits) }
        } catch {
            throw CacheError(error, "be opened at \(url?.path ?? "memory")")
        }
        foreign = ForeignCommits(store.watch, configuration.timekeeper)
        evictions = EvictionTimers(configuration.timekeeper) { [store] in store.isSuspended }
    }

    deinit {
        // From inside a body of a transaction the store cannot be closed in order. It is released all the same.
        do { try close() } catch {}
    }

    /// Reports on the store: evictions, recoveries, failures that no call could report.
    ///
    /// Each access creates a stream. The newest 1,000 events wait for a reader; ``CacheEvent/lostBefore`` counts those that
    /// were dropped. The first stream begins with what happened before it, except for evictions and expirations.
    public var events: AsyncStream<CacheEvent> { reporter.hub.stream() }

    /// Closes the store: running calls are finished, and later ones throw ``CacheError/Code/closed``.
    ///
    /// Closing twice is harmless.
    ///
    /// - Throws: `.reentrant`.
    public func close() throws(CacheError) {
        try throwing("be closed") { () throws(StoreError) in try store.close() }
        for cache in allOpenCaches {
            cache.streamsToEnd()()
            cache.wasClosed()
        }
        reporter.hub.finish()
    }

    /// Closes the store: later calls throw ``CacheError/Code/closed``.
    public func close() async throws(CacheError) { try await offload { () throws(CacheError) in try self.close() } }

    /// Returns whether a failure is reported that no call can throw: of a suspension only the first is.
    @usableFromInline
    func reports(_ error: CacheError) -> Bool {
        error.code != .suspended || !isSuspensionReported.exchange(true, ordering: .relaxed)
    }

    /// Writes when entries were last accessed, as far as ``CacheOptions/accessGrain`` asks for it.
    ///
    /// - Throws: `.readOnly`, `.closed`, `.storageFull`, `.busy`, `.reentrant`.
    public func flush() throws(CacheError) {
        try throwing("write the accesses") { () throws(StoreError) in try store.flush() }
    }

    /// Stores the times of the last accesses, except those within ``CacheOptions/accessGrain`` of the stored
    /// ones.
    public func flush() async throws(CacheError) { try await offload { () throws(CacheError) in try self.flush() } }

    /// Runs a call of the store, and says what it was to do if it fails.
    func throwing<R>(_ action: String, _ body: () throws(StoreError) -> R) throws(CacheError) -> R {
        guard let trace = store.trace else {
            do throws(StoreError) { return try body() } catch { throw CacheError(error, action) }
        }
        return try trace.following(action, nil, nil, .disk) { () throws(CacheError) in
            do throws(StoreError) { return try body() } catch { throw CacheError(error, action) }
        }
    }

    // MARK: Open caches

    /// Returns what handles with a declaration share; nil if no handle is live.
    ///
    /// - Throws: `.typeMismatch` if a live handle has other types.
    func core<Key, Value>(_ cache: CacheIdentity) throws(CacheError) -> CacheCore<Key, Value>? {
        guard let open = openCaches.withLock({ $0.cache(cache) }) else { return nil }
        return try Self.cast(open, cache)
    }

    /// Returns what handles with a declaration share, and creates it for the first.
    func core<Key, Value>(
        _ cache: CacheIdentity, make: () -> CacheCore<Key, Value>
    ) throws(CacheError) -> (cache: CacheCore<Key, Value>, isNew: Bool) {
        // The last handle of another cache may go in the meantime, so what is looked at is released outside the lock.
        let (open, isNew, others) = openCaches.withLock {
            caches -> (any AnyCacheCore, Bool, [any AnyCacheCore]) in
            if let open = caches.cache(cache) { return (open, false, []) }
            let made = make()
            return (made, true, caches.add(made, cache))
        }
        _ = consume others
        return (try Self.cast(open, cache), isNew)
    }

    private static func cast<Key, Value>(
        _ open: any AnyCacheCore, _ cache: CacheIdentity
    ) throws(CacheError) -> CacheCore<Key, Value> {
        if let open = open as? CacheCore<Key, Value> { return open }
        throw CacheError(
            .typeMismatch,
            "The cache \"\(cache.name.text)\" is open in this manager with keys of type \(open.types.key) and values of type"
                + " \(open.types.value), and not \(Key.self) and \(Value.self). Use the types that are open, release the handle"
                + " that has them, or open another version.")
    }

    var allOpenCaches: [any AnyCacheCore] { openCaches.withLock { $0.all } }

    /// The number of references to open caches, those of released ones included.
    package var openCacheCount: Int { openCaches.withLock { $0.count } }

    /// Ends what shows a cache under other declarations than one, or under any, but for later openings.
    ///
    /// - Parameter openingCount: The place of the opening or removal in the order of commits. Calls come in any order.
    func supersede(_ name: String, by cache: CacheIdentity?, _ openingCount: Int) {
        let (others, ends) = openCaches.withLock { caches -> ([any AnyCacheCore], [@Sendable () -> Void]) in
            let others = caches.supersede(LarderStore.ExactName(name), by: cache, openingCount)
            return (others, others.map { $0.streamsToEnd() })
        }
        for other in others { other.wasCleared() }
        for end in ends { end() }
    }
}

extension CacheManager: CustomStringConvertible {
    /// The file, and the names of the open caches.
    public var description: String {
        let names = store.openNames.map { "\"\($0)\"" }.joined(separator: ", ")
        let state = store.isClosed ? "closed" : names.isEmpty ? "no open caches" : "open: \(names)"
        return "CacheManager(\(place), \(state))"
    }

    var place: String { url?.path ?? "in memory" }
}

extension CacheManager {
    /// Opens the store `<caches directory>/<name>.sqlite`, and creates it if it is missing.
    ///
    /// The call blocks no thread of the cooperative pool.
    ///
    /// - Parameters:
    ///   - name: The name of the file, without its ending.
    ///   - priming: A store of which a missing one begins as a copy, see ``init(url:priming:configuration:)``.
    ///   - configuration: The settings of the manager.
    /// - Throws: An opening error, see ``CacheError``.
    public static func open(
        name: String, priming: URL? = nil, configuration: Configuration = .init()
    ) async throws(CacheError) -> CacheManager {
        try await offload { () throws(CacheError) in
            try CacheManager(name: name, priming: priming, configuration: configuration)
        }
    }

    /// Opens the store in a file, and creates it and its folder if they are missing.
    ///
    /// The call blocks no thread of the cooperative pool.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - priming: A store of which a missing one begins as a copy, see ``init(url:priming:configuration:)``.
    ///   - configuration: The settings of the manager.
    /// - Throws: An opening error, see ``CacheError``.
    public static func open(
        url: URL, priming: URL? = nil, configuration: Configuration = .init()
    ) async throws(CacheError) -> CacheManager {
        try await offload { () throws(CacheError) in
            try CacheManager(url: url, priming: priming, configuration: configuration)
        }
    }

    /// The release of the library, as the change log names it.
    public static let libraryVersion = "1.0.0"
}
