/// Puts together what is to be released where nothing is held.
@usableFromInline
package enum ReleasedLater {
    /// Two things as one; nothing is made where there is one at most.
    @inlinable @inline(__always)
    package static func both(_ one: (any Sendable)?, _ other: (any Sendable)?) -> (any Sendable)? {
        guard let other else { return one }
        guard let one else { return other }
        return [one, other]
    }

    /// Several as one; nil if there are none.
    package static func all(_ things: [any Sendable]) -> (any Sendable)? { things.isEmpty ? nil : things }
}
