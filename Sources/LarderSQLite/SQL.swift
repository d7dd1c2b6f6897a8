import LarderLocks

/// The text of a statement that connections prepare once and keep.
///
/// Declare it as a `static let`; its place in a connection's table of prepared statements is its own for the life of
/// the process.
@usableFromInline
package final class SQL: Sendable {
    package let text: String
    let index: Int

    private static let count = Atomic(0)

    package init(_ text: String) {
        self.text = text
        index = SQL.count.add(1, ordering: .relaxed).oldValue
    }
}
