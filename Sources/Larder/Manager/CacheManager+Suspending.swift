internal import LarderLocks
internal import LarderStore

/// What has asked for a suspension, and what puts it off.
struct SuspensionState: Sendable {
    /// A Boolean value that indicates whether the manager is to be suspended.
    var isWanted = false
    /// The number of calls of `whileResumed` that run.
    var scopes = 0
    /// The number of suspensions that have begun and not ended.
    var running = 0
    /// Calls that wait for these.
    var waiters: [CheckedContinuation<Void, Never>] = []

    /// Begins a suspension, unless a scope puts it off.
    mutating func begins() -> Bool {
        if scopes > 0 { return false }
        running += 1
        return true
    }

    /// Ends a suspension, and returns the calls that have waited for it.
    mutating func end() -> [CheckedContinuation<Void, Never>] {
        running -= 1
        if running > 0 { return [] }
        defer { waiters = [] }
        return waiters
    }
}

extension CacheManager {
    /// Releases every lock and every transaction on the files of the store, and takes none until ``resume()``.
    ///
    /// Call it before the system suspends the app or freezes the process. The call waits for writes, reads and closures of
    /// transactions that run. After it, hits in memory are served, and nothing runs in the background. Every other call throws
    /// ``CacheError/Code/suspended``, and the subscript returns nil. The first failure of a subscript is reported. Streams of
    /// values wait for ``resume()``, and intervals of eviction closures begin again after it. Suspending twice is harmless.
    /// Two managers on one file are suspended each for itself.
    ///
    /// While `whileResumed` runs, the call returns at once, and the manager is suspended when that ends.
    ///
    /// - Throws: `.closed`, `.reentrant`.
    public func suspend() throws(CacheError) {
        // A body may not undo the suspension that waits for it.
        try throwing("be suspended") { () throws(StoreError) in try store.requireNoBody() }
        let begins = suspension.withLock { state in
            state.isWanted = true
            return state.begins()
        }
        if begins { try suspendStore() }
    }

    /// Releases every lock and every transaction on the files of the store, and takes none until ``resume()``.
    ///
    /// - Throws: `.closed`.
    public func suspend() async throws(CacheError) {
        try await offload { () throws(CacheError) in try self.suspend() }
    }

    /// Ends a suspension; the next call opens the file again.
    ///
    /// Values in memory are compared with their rows before they are served again. Streams of changes report
    /// what others have written.
    public func resume() {
        suspension.withLock { $0.isWanted = false }
        resumeStore()
        // Of a suspension at the same time nothing is left.
        suspension.withLock { $0.isWanted = false }
    }

    /// Runs a closure while the manager is resumed, and suspends it afterwards if it was, or if that was asked for in the meantime.
    ///
    /// Use it for work in the background, of an app whose store is in the container of an app group. Calls can run at the same time
    /// and inside each other: the last one that ends suspends the manager. Let the system know of the work, so that it does not freeze the process
    /// before the closure ends. A suspension that fails is reported as an event.
    ///
    /// ```swift
    /// try await manager.whileResumed { try await articles.setValues(try await api.news()) }
    /// ```
    ///
    /// - Parameters:
    ///   - isolation: The actor on which the closure runs.
    ///   - body: The work.
    /// - Returns: What the closure returns.
    /// - Throws: What the closure throws.
    public func whileResumed<R>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> sending R
    ) async rethrows -> sending R {
        await beginScope()
        do {
            let result = try await body()
            await endScope()
            return result
        } catch {
            await endScope()
            throw error
        }
    }

    private func beginScope() async {
        // A suspension that runs is awaited, so that it cannot come after the resumption.
        await withCheckedContinuation { continuation in
            let waits = suspension.withLock { state in
                state.scopes += 1
                if state.running > 0 { state.waiters.append(continuation) }
                return state.running > 0
            }
            if !waits { continuation.resume() }
        }
        resumeStore()
    }

    private func endScope() async {
        let begins = suspension.withLock { state in
            state.scopes -= 1
            return state.isWanted && state.begins()
        }
        if !begins { return }
        await offload {
            do throws(CacheError) { try self.suspendStore() } catch {
                if error.code == .closed { return }
                self.reporter.report(CacheEvent(.writeFailed, message: error.message), .error, error: error)
            }
        }
    }

    /// Runs a suspension that has begun.
    private func suspendStore() throws(CacheError) {
        defer {
            let waiters = suspension.withLock { $0.end() }
            for waiter in waiters { waiter.resume() }
        }
        do throws(StoreError) { try store.suspend() } catch {
            suspension.withLock { $0.isWanted = false }
            // Streams may have found the store suspended, which it is not.
            goOn()
            throw CacheError(error, "be suspended")
        }
        evictions.follow()
        foreign.pause()
        // It may have been called off.
        if suspension.withLock({ !$0.isWanted }) { resumeStore() }
    }

    private func resumeStore() {
        if !store.resume() { return }
        isSuspensionReported.store(false, ordering: .relaxed)
        goOn()
    }

    private func goOn() {
        evictions.follow()
        for cache in allOpenCaches { cache.wasResumed() }
    }

    #if canImport(Darwin)
    func suspendInBackground() {
        #if !os(macOS)
        let entering = BackgroundWatcher { [weak self] in
            self?.isInBackground.store(true, ordering: .relaxed)
            // On a thread of its own: the notification is on the main one, for which what runs may wait. It is called
            // again when the time has passed.
            ProcessInfo.processInfo.performExpiringActivity(withReason: "The files of a store are closed.") {
                [weak self] _ in
                self?.followBackground()
            }
        }
        let leaving = BackgroundWatcher(BackgroundWatcher.leaving) { [weak self] in
            self?.isInBackground.store(false, ordering: .relaxed)
            self?.resume()
        }
        backgroundWatchers.withLock { $0 = [entering, leaving] }
        #endif
    }

    private func followBackground() {
        if !isInBackground.load(ordering: .relaxed) { return }
        do throws(CacheError) { try suspend() } catch { report(error) }
        // The app may have come back in the meantime.
        if !isInBackground.load(ordering: .relaxed) { resume() }
    }

    private func report(_ error: CacheError) {
        if error.code == .closed { return }
        reporter.report(CacheEvent(.writeFailed, message: error.message), .error, error: error)
    }
    #endif
}
