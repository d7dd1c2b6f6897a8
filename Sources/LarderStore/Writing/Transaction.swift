/// What the writer notes of one transaction: made at its beginning, and read at its end.
struct Transaction {
    /// The number of rows that the connection had changed before.
    var changesBefore = 0
    /// The pages that the database had before; 0 unless the disk is short of room.
    var pagesBefore = 0
    /// Whether it adds, retires or changes an incarnation.
    var switchesIncarnation = false
    /// The files that it displaces, and those that its body wrote.
    var displacedFiles: [String] = []
    var writtenFiles: [String] = []
    /// What is reported once it is committed.
    var events: [StoreEvent] = []
    /// The rows that it removes by age, limit or tag.
    var removedRows: [CacheIdentity: [RemovedRow]] = [:]
    /// The caches whose incarnations it retires: their loads store nothing.
    var retiredCaches: [CacheIdentity] = []
    /// A Boolean value that indicates whether a pinned row was unpinned, replaced or removed.
    var hasUnpinned = false
    /// The evictions that it has changed, with their spare victims, as they were before.
    var evictionsBefore: [(id: Int64, eviction: Eviction?, spare: Eviction.Spare?)] = []
    /// The rows and bytes that it has added and not removed for limits, by the keys of evictions; nil if it has begun one.
    var owed: [Int64: Totals?] = [:]
    /// What its body has done, and what memory learns of it after the commit.
    var applies: [(apply: CacheRows.Apply, outcome: Outcome)] = []
    /// What is called at the end of its body, by the objects that asked for it.
    var endings: [ObjectIdentifier: () -> Void] = [:]
    /// A failure inside a request that the body caught: half of the request may be done, so nothing is committed.
    var failure: (any Error)?
    /// A failure of a read inside the body, which may throw another error.
    var readFailure: (any Error)?
}
