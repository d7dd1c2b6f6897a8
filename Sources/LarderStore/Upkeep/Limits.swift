/// The most that a cache may have.
package struct Limits: Hashable, Sendable {
    /// Nil: no limit.
    package var count: Int64?
    /// Bytes of payloads and extended data; nil: no limit.
    package var size: Int64?

    package init(count: Int64? = nil, size: Int64? = nil) { (self.count, self.size) = (count, size) }

    /// Returns the entries and bytes to remove so that the limits hold.
    ///
    /// - Parameter isExact: A Boolean value that indicates whether no more may go. If not, a twentieth of the limit goes at
    ///   least, so that not every write has to remove.
    func excess(of totals: Totals, isExact: Bool = false) -> Totals {
        func excess(_ limit: Int64?, _ value: Int64) -> Int64 {
            guard let limit, value > limit else { return 0 }
            return max(value - limit, isExact ? 0 : min(limit / 20, value))
        }
        return Totals(count: excess(count, totals.count), size: excess(size, totals.size))
    }
}

extension Int64 {
    /// A limit as the file has it: one below 0 counts as none.
    var asLimit: Int64? { self < 0 ? nil : self }
}

/// The limits of a whole store.
package struct StoreLimits: Hashable, Sendable {
    /// Bytes over all caches; nil: no limit.
    package var size: Int64?
    /// The bytes that stay free on the disk; nil: none.
    package var freeSpace: Int64?

    package init(size: Int64? = nil, freeSpace: Int64? = nil) { (self.size, self.freeSpace) = (size, freeSpace) }
}
