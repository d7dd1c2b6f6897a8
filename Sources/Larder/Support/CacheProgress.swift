/// How far a long piece of work has come.
public struct CacheProgress: Hashable, Sendable {
    /// How much is done.
    public let completed: Int

    /// How much there is.
    public let total: Int

    package init(completed: Int, total: Int) {
        self.completed = completed
        self.total = total
    }
}

/// Told how far a long piece of work has come, while nothing is held; it may use the cache.
public typealias ProgressHandler = @Sendable (CacheProgress) -> Void
