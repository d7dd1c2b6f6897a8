/// Holds code up until a test opens it.
package final class LoadGate: Sendable {
    private struct State {
        var isOpen: Bool
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
        var lastWaiter = 0
    }

    private let state: Locked<State>

    /// Creates a gate that is closed, unless something else is said.
    package init(isOpen: Bool = false) { state = Locked(State(isOpen: isOpen)) }

    package var isOpen: Bool { state.value.isOpen }

    /// Lets all code go on, now and later.
    package func open() {
        let waiters = state.change { state in
            defer { (state.isOpen, state.waiters) = (true, [:]) }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume() }
    }

    /// Suspends the task until the gate is open; a cancelled task throws.
    package func waitInTask() async throws {
        let number = state.change { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let goesOn = state.change { state in
                    if state.isOpen || Task.isCancelled { return true }
                    state.waiters[number] = continuation
                    return false
                }
                if goesOn { continuation.resume() }
            }
        } onCancel: {
            state.change { $0.waiters.removeValue(forKey: number) }?.resume()
        }
        try Task.checkCancellation()
    }

    /// Blocks the thread until the gate is open.
    package func wait() throws { try Waiting.until { isOpen } }
}
