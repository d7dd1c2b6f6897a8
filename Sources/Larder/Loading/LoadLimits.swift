internal import LarderLocks
internal import LarderStore

/// How long a call waits for loads, and how long the loads run that it begins.
final class LoadLimits: Sendable {
    /// The time after which the call no longer waits, because it has an old value; nil if it has none.
    let soft: Duration?
    /// The time after which a load is ended.
    let hard: Duration?
    let timekeeper: Timekeeper
    /// Returns the error for callers of a load that is ended.
    let timeout: @Sendable () -> any Error
    /// Gets the error of a load that goes on after its callers.
    let failed: LoadFailure
    /// The places of the keys for which the call has waited too long.
    private let places = Mutex<[Int]>([])

    init(
        soft: Duration?, hard: Duration?, _ timekeeper: Timekeeper, timeout: @escaping @Sendable () -> any Error,
        failed: @escaping LoadFailure
    ) {
        (self.soft, self.hard, self.timekeeper) = (soft, hard, timekeeper)
        (self.timeout, self.failed) = (timeout, failed)
    }

    /// Notes for which keys the call waits no longer, by their places in it.
    func note(late: [Int]) { places.withLock { $0 = late } }

    /// The places of the keys for which the call has waited too long, because there is an old value.
    var late: [Int] { places.withLock { $0 } }
}

/// The timers of a call that waits for loads.
struct LoadPatience: Sendable {
    private let limits: LoadLimits
    private let wakeups: [Wakeup]
    private let isOver = Over()

    private final class Over: Sendable {
        /// Becomes true when the call no longer waits, because it has an old value.
        let isSoft = Atomic(false)
        /// Becomes true when the call has waited too long.
        let isHard = Atomic(false)
    }

    init<ID>(_ limits: LoadLimits, _ loads: Loads<ID>, _ own: LoadTicket?, _ others: [LoadTicket]) {
        let (isOver, timekeeper) = (isOver, limits.timekeeper)
        let soft = limits.soft.map { time in
            timekeeper.wakeBriefly(time) { [limits] in
                isOver.isSoft.store(true, ordering: .relaxed)
                if let own { loads.leaveRunning(own, limits.failed) }
                // Whether one of another call goes on is the matter of that call.
                return { for ticket in others { loads.leave(ticket) } }
            }
        }
        // A load that the call has begun is ended for all its callers.
        let hard =
            others.isEmpty
            ? nil
            : limits.hard.map { time in
                timekeeper.wakeBriefly(time) {
                    isOver.isHard.store(true, ordering: .relaxed)
                    // It may be the last caller of a load, whose task is cancelled then.
                    return { for ticket in others { loads.leave(ticket) } }
                }
            }
        (self.limits, wakeups) = (limits, [soft, hard].compactMap { $0 })
    }

    func end() { for wakeup in wakeups { wakeup.cancel() } }

    /// Returns whether the call ends without an error because it has an old value.
    ///
    /// - Throws: The error of a call that has waited too long.
    func isLate() throws -> Bool {
        if isOver.isSoft.load(ordering: .relaxed) { return true }
        if isOver.isHard.load(ordering: .relaxed) { throw limits.timeout() }
        return false
    }
}
