/// A row that the store removed by age, limit or tag.
package struct RemovedRow: Sendable {
    package enum Cause: Hashable, Sendable {
        case expired, removed, damaged
        /// By a closure of the program that evicts.
        case decided
        /// By the typed side, because it does not decode.
        case undecodable
        case evicted(by: Shortage)
    }

    /// What there was too little of for a row to stay.
    package enum Shortage: Sendable { case count, size, space }

    package let key: StoredKey
    package let id: Int64
    package let revision: Int64
    package let cause: Cause
}
