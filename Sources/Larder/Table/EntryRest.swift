/// What belongs to an entry of a memory tier and no hit needs.
@usableFromInline
struct EntryRest: Sendable {
    /// The row's revision.
    @usableFromInline var revision: Int64 = 0
    /// The row's id.
    @usableFromInline var id: Int64 = 0

    @inlinable
    init() {}

    @inlinable
    init(id: Int64, revision: Int64) { (self.id, self.revision) = (id, revision) }
}
