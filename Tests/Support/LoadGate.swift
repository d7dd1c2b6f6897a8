/// Holds code up until a test opens it.
package final class LoadGate: Sendable {
    private let openings = Counter()

    /// Creates a gate that is closed, unless something else is said.
    package init(isOpen: Bool = false) {
        if isOpen { open() }
    }

    package var isOpen: Bool { openings.value > 0 }

    /// Lets all code go on, now and later.
    package func open() { openings.increment() }

    /// Suspends the task until the gate is open; a cancelled task throws.
    package func waitInTask() async throws {
        try await Waiting.until { isOpen }
        try Task.checkCancellation()
    }

    /// Blocks the thread until the gate is open.
    package func wait() throws { try Waiting.until { isOpen } }
}
