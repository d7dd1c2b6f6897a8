import LarderTestSupport

/// Holds code up until a test opens it.
final class LoadGate: Sendable {
    private let openings = Counter()

    /// Creates a gate that is closed, unless something else is said.
    init(isOpen: Bool = false) {
        if isOpen { open() }
    }

    var isOpen: Bool { openings.value > 0 }

    /// Lets all code go on, now and later.
    func open() { openings.increment() }

    /// Suspends the task until the gate is open; a cancelled task throws.
    func waitInTask() async throws {
        try await Waiting.until { isOpen }
        try Task.checkCancellation()
    }

    /// Blocks the thread until the gate is open.
    func wait() throws { try Waiting.until { isOpen } }
}
