/// Which write of which row.
@usableFromInline
package struct RowVersion: Equatable, Sendable {
    @usableFromInline package var id: Int64
    /// A number that changes with each write of the row.
    @usableFromInline package var revision: Int64

    /// That of no row.
    @inlinable package static var none: RowVersion { RowVersion(id: 0, revision: 0) }

    @inlinable
    package init(id: Int64, revision: Int64) { (self.id, self.revision) = (id, revision) }
}
