/// Objects to release once no lock is held.
///
/// Releasing a value or a key may run code of the program, which may call the cache. So code that removes one under a
/// lock adds it here, and the caller releases all of them when no lock is held any more.
@usableFromInline
package struct Deferred: Sendable {
    @usableFromInline var objects: [any Sendable] = []

    @inlinable
    package init() {}

    var isEmpty: Bool { objects.isEmpty }

    /// Adds an object; nil is nothing to release.
    @inlinable @inline(__always)
    package mutating func add(_ object: (any Sendable)?) {
        if let object { objects.append(object) }
    }
}
