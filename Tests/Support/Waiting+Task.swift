import Dispatch

/// Runs `body` in a task, and waits for it on this thread, which must not be one of the pool's.
package func waiting<R: Sendable>(
    _ file: StaticString = #fileID, _ line: Int = #line, for body: @escaping @Sendable () async throws -> R
) throws -> R {
    let isOver = DispatchSemaphore(value: 0)
    let outcome = Locked<Result<R, any Error>?>(nil)
    Task.detached {
        let result: Result<R, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        outcome.change { $0 = result }
        isOver.signal()
    }
    guard isOver.wait(timeout: Waiting.deadline) == .success else { throw Waiting.InVain(file, line) }
    guard let result = outcome.value else { preconditionFailure("A task ended without a result.") }
    return try result.get()
}
