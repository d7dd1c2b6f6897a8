/// Objects to release once no lock is held.
///
/// The end of a value or of a key may run code of the user's, which may call the cache. So whoever removes one under a lock
/// adds it here, and the caller releases all of it when nothing is held any more.
@usableFromInline
package struct Discards: Sendable {
    @usableFromInline var objects: [any Sendable] = []

    @inlinable
    package init() {}

    /// Adds an object; nil is nothing to release.
    @inlinable @inline(__always)
    package mutating func add(_ object: (any Sendable)?) {
        if let object { objects.append(object) }
    }

    /// Adds what was collected elsewhere.
    package mutating func add(_ others: Discards) { objects += others.objects }

    package var isEmpty: Bool { objects.isEmpty }
}
