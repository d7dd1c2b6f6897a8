internal import LarderSQLite

/// What follows a hold of the writer's lock once that is released.
struct Outbox {
    /// What the store has done unasked, in the order in which it was done.
    var notices: [Notice] = []
    /// The files that no row names any more, to be discarded, and the folder in which they are.
    var files: [String] = []
    var folder: ValueFiles?
    /// The part of evictions that the call goes on with.
    var share = EvictionShare()
    /// A Boolean value that indicates whether a limit depends on rows that are to be counted.
    var needsCount = false
    /// Objects whose end may run code of the program.
    var released: [Any] = []
}

/// What the store has done unasked: memory is told of it outside the lock, and then the program.
enum Notice: Sendable {
    /// The file was opened again.
    case opened(CommitWatch, isSameFile: Bool)
    /// Rows of a cache were removed by age, limit or tag; the tiers are those that were told so under the lock.
    case removed([RemovedRow], cache: CacheIdentity, tiers: [any TierDelegate])
    case event(StoreEvent)

    /// What the program is told.
    var event: StoreEvent? {
        switch self {
        case .opened: nil
        case .removed(let rows, let cache, _): .removed(rows, cache: cache.name.text)
        case .event(let event): event
        }
    }
}
