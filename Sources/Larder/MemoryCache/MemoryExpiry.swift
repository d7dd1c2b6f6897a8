/// When the entries of a memory cache expire: the timer, and the clock by which its sweeps go.
@usableFromInline
final class MemoryExpiry: Sendable {
    let timer: ExpiryTimer
    let clock: SweepClock

    init(_ timekeeper: Timekeeper) {
        timer = ExpiryTimer(timekeeper)
        clock = SweepClock(timekeeper)
    }
}

extension MemoryCache {
    /// Sees to it that an entry whose age began at `start` is removed when it has expired.
    @usableFromInline
    func noteStart(_ start: Int64?) {
        expiry?.timer.note(end: rule.end(start: start ?? 0), age: rule.pauseAge) { [weak self] in self?.sweepOnTime() }
    }

    private func sweepOnTime() {
        guard let expiry, let oldest = sweep().oldest, let end = rule.end(start: oldest) else { return }
        let now = expiry.clock.moment()
        let remaining = end.subtractingSaturated(now.now(from: oldest))
        // While the clock is ahead, an age that began later may end sooner.
        expiry.timer.note(
            remaining: now.isContradicted ? Swift.min(remaining, rule.pauseAge) : remaining, age: rule.pauseAge
        ) {
            [weak self] in self?.sweepOnTime()
        }
    }
}
