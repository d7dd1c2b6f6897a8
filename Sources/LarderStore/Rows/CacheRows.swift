/// The rows of one cache: what a handle on the cache asks of the store.
///
/// It names the cache by its declaration, so a clear does not concern it. Once no live cache has the declaration it is
/// *superseded*: reads find nothing, and writes throw.
package final class CacheRows: Sendable {
    package let declaration: CacheDeclaration
    let store: Store

    /// Called after each commit of a request, under the writer's lock and in the order of commits.
    package typealias Apply = @Sendable (Outcome) -> Void

    init(_ declaration: CacheDeclaration, store: Store) {
        (self.declaration, self.store) = (declaration, store)
    }

    // MARK: Writing

    /// Runs an operation and returns when it is committed.
    @discardableResult
    package func run(_ operation: RowOperation, apply: Apply? = nil) throws(StoreError) -> Outcome {
        try store.writer.run(.rows(operation, declaration), apply: apply)
    }

    /// Runs an operation for a task.
    ///
    /// A task that is cancelled while the operation waits throws `CancellationError`.
    @discardableResult
    package func run(_ operation: RowOperation, apply: Apply? = nil) async throws -> Outcome {
        try await store.writer.run(.rows(operation, declaration), apply: apply)
    }
}
