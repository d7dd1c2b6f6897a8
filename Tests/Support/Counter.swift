import LarderLocks

/// Counts from any thread.
package final class Counter: Sendable {
    private let count = Atomic(0)

    package init() {}

    package var value: Int { count.load(ordering: .sequentiallyConsistent) }

    /// Counts one more, and gives the new number.
    @discardableResult
    package func increment() -> Int { count.add(1, ordering: .sequentiallyConsistent).newValue }
}
