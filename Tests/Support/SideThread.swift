import Dispatch
import Foundation

/// Code on a thread of its own beside the test, which no pool of threads lets wait.
package final class SideThread<R: Sendable>: Sendable {
    private let outcome = Locked<Result<R, any Error>?>(nil)
    private let isOver = DispatchGroup()

    /// - Parameter stackSize: The thread's stack in bytes, if not the system's choice.
    package init(stackSize: Int? = nil, _ body: @escaping @Sendable () throws -> R) {
        isOver.enter()
        let thread = Thread { [outcome, isOver] in
            let result = Result { try body() }
            outcome.change { $0 = result }
            isOver.leave()
        }
        if let stackSize { thread.stackSize = stackSize }
        thread.start()
    }

    /// What came of it, once it has ended; does not wait.
    package var result: Result<R, any Error>? { outcome.value }

    /// Waits until it has ended; what it returned or threw.
    @discardableResult
    package func value(_ file: StaticString = #fileID, _ line: Int = #line) throws -> R {
        guard isOver.wait(timeout: Waiting.deadline) == .success else { throw Waiting.InVain(file, line) }
        guard let result else { preconditionFailure("A thread ended without a result.") }
        return try result.get()
    }
}

/// Runs `body` on a thread that no task needs, and waits for it as a task does.
package func onThread<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}
