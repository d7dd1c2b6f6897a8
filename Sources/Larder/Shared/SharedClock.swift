/// The clock of what waits for a tier, which is no clock of entries.
enum SharedClock {
    typealias Instant = ContinuousClock.Instant

    static var now: Instant { .now }

    /// Waits, but no longer than the task runs.
    static func pause(_ time: Duration) async { do { try await Task.sleep(for: time) } catch {} }
}
