/// Follows the system's memory pressure while somebody holds it.
final class PressureLink: PressureResponder {
    private let body: @Sendable (MemoryPressure) -> Void

    init(_ body: @escaping @Sendable (MemoryPressure) -> Void) {
        self.body = body
    }

    func handleMemoryPressure(_ level: MemoryPressure) { body(level) }
}
