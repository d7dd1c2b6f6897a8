/// The rows of one cache: what a handle on the cache asks of the store.
///
/// It names the cache by its declaration, so a clear does not concern it. Once no live cache has the declaration it is
/// *superseded*: reads find nothing, and writes throw.
package final class CacheRows: Sendable {
    package let declaration: CacheDeclaration
    private let writer: Writer

    /// Called after each commit of a request, under the writer's lock and in the order of commits.
    package typealias Apply = @Sendable (Outcome) -> Void

    init(_ declaration: CacheDeclaration, writer: Writer) {
        (self.declaration, self.writer) = (declaration, writer)
    }

    // MARK: Writing

    /// Runs an operation and returns when it is committed.
    @discardableResult
    package func run(_ operation: RowOperation, apply: Apply? = nil) throws(StoreError) -> Outcome {
        try writer.run(.rows(operation, declaration), apply: apply)
    }

    /// Runs an operation for a task.
    ///
    /// A task that is cancelled while the operation waits throws `CancellationError`.
    @discardableResult
    package func run(_ operation: RowOperation, apply: Apply? = nil) async throws -> Outcome {
        try await writer.run(.rows(operation, declaration), apply: apply)
    }

    // MARK: Reading

    /// Returns the entry of a key, expired or not; nil if there is none or its row is damaged.
    package func row(_ key: StoredKey) throws(StoreError) -> StoredRow? {
        try writer.read { state in try state.row(key, of: self.declaration) }
    }

    /// Returns the number of rows and their bytes, expired ones included.
    package func totals() throws(StoreError) -> Totals {
        try writer.read { state in
            try state.generation(of: self.declaration).map { generation in
                try state.totals(of: generation.id)
            } ?? Totals()
        }
    }

    /// Returns whether no live cache has the declaration.
    package func isSuperseded() throws(StoreError) -> Bool {
        try writer.read { state in state.generation(of: self.declaration) == nil }
    }
}
