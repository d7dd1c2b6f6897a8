internal import LarderSQLite

/// What follows transactions once the writer's lock is released.
struct Aftermath {
    /// The rows of a cache that were removed by age, limit or tag, and the tiers that were told so.
    struct Removal {
        let cache: CacheIdentity
        let rows: [RemovedRow]
        let tiers: [any TierDelegate]
    }

    /// The files that no row names any more, to be discarded, and the folder in which they are.
    var files: [String] = []
    var folder: ValueFiles?
    var removals: [Removal] = []
    var events: [StoreEvent] = []
    /// The watch of the file that was opened again, and whether it is the same file as before.
    var opened: (watch: CommitWatch, isSameFile: Bool)?
    /// The part of evictions that the call goes on with.
    var share = EvictionShare()
    /// A Boolean value that indicates whether a limit depends on rows that are to be counted.
    var needsCount = false
    /// Objects whose end may run code of the program.
    var released: [Any] = []
}

extension Writer {
    /// Does what follows transactions.
    ///
    /// The call's part of evictions goes on. Between its slices other threads write. A call of the serial queue leaves it to
    /// another thread, so that the bodies of tasks wait for one slice at most.
    ///
    /// - Parameters:
    ///   - finished: The requests that were run, whose tasks go on.
    ///   - waits: Whether this thread may wait for files to be deleted.
    func finish(_ aftermath: Aftermath, _ finished: [Request] = [], waits: Bool) {
        finishOnce(aftermath, finished, waits: waits)
        if aftermath.share.isEmpty && !aftermath.needsCount { return }
        if isOnSerialQueue || !waits { return goOnInBackground(aftermath.share, needsCount: aftermath.needsCount) }
        if !aftermath.share.isEmpty { goOn(aftermath.share) }
        if aftermath.needsCount { countAfterWrite() }
    }

    func finishOnce(_ aftermath: Aftermath, _ finished: [Request], waits: Bool) {
        if let (watch, isSameFile) = aftermath.opened {
            for tier in tiers.all.values.joined() { tier.storeWasOpened(watch, isSameFile: isSameFile) }
        }
        for removal in aftermath.removals { for tier in removal.tiers { tier.rowsWereRemoved(removal.rows) } }
        for removal in aftermath.removals { report(.removed(removal.rows, cache: removal.cache.name.text)) }
        for event in aftermath.events { report(event) }
        if !aftermath.files.isEmpty, let files = aftermath.folder {
            if waits { files.discard(aftermath.files) } else { files.discardLater(aftermath.files) }
        }
        for request in finished { request.resume() }
    }
}
