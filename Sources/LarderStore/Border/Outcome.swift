/// What has come of a change, or of a chore.
@usableFromInline
package struct Outcome: Sendable {
    /// What has happened to one key.
    @usableFromInline
    package struct RowChange: Sendable {
        @usableFromInline package let key: StoredKey
        /// The new row; nil if the row was removed.
        @usableFromInline package let row: RowSummary?
    }

    /// The rows that were written or removed, in order.
    ///
    /// A clear lists none.
    @usableFromInline package var rows: [RowChange] = []
    /// The totals of the rows that a clear removed; nil for other changes.
    package var cleared: Totals?
    /// The row that was removed; without its payload if that is in a file, which the caller reads and discards.
    package var taken: StoredRow?
    /// The folder of that file.
    var files: ValueFiles?
    var opening = Opened()
    /// The epoch in which the written rows are valid.
    @usableFromInline package var epoch: UInt32 = 0
    /// What the change has displaced in memory.
    var deferred = Deferred()
    /// What the change adds to the totals.
    package var difference = Totals()
}

/// What is known of a cache once it is opened.
struct Opened: Sendable {
    /// The place of the opening in the order of commits of openings and removals.
    var count = 0
    /// A Boolean value that indicates whether it has begun an incarnation.
    var isNew = false
    var limits = Limits()
    var hasStoreLimits = false
}
