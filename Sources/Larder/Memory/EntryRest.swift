/// What belongs to an entry of a memory tier and no hit needs.
@usableFromInline
struct EntryRest: Sendable {
    /// The row's revision.
    @usableFromInline var revision: Int64 = 0
    /// The moment of the last access as the row has it.
    @usableFromInline var storedAccess: Int64 = 0

    @inlinable
    init() {}
}
