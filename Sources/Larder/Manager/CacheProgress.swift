/// The progress of a long operation.
public struct CacheProgress: Hashable, Sendable {
    /// The number of items that are done.
    public let completed: Int

    /// The number of all items.
    public let total: Int

    package init(completed: Int, total: Int) {
        self.completed = completed
        self.total = total
    }
}

/// A closure that receives the progress of a long operation.
///
/// No lock is held during the call, so the closure may use the cache.
public typealias ProgressHandler = @Sendable (CacheProgress) -> Void
