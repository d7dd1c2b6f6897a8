internal import Synchronization

/// How memory releases what has expired, also without traffic.
extension SubCache {
    /// How many entries a sweep looks at while it holds the lock.
    private static var entriesPerSlice: UInt32 { 1024 }

    /// Sees to it that an entry leaves memory when no handle may serve it any more.
    @usableFromInline
    func noteEnd(writtenAt: Int64, accessedAt: Int64, age: StoredAge?) {
        guard mayHoldCopies, let earliest = ledger.earliestEnd(writtenAt, age), expiry.isNews(earliest) else { return }
        let rules = age.map { [$0.rule] } ?? ledger.ownRules
        let end = rules.map { $0.end(start: $0.isSliding ? accessedAt : writtenAt) ?? .max }.max()
        expiry.note(end: end, age: rules.map(\.pauseAge).min() ?? 0) { [weak self] in self?.sweepMemory() }
    }

    /// Has memory looked through soon: other ages count from now on.
    package func lookSoon() {
        guard mayHoldCopies, let rule = ledger.ownRules.first(where: { !$0.isUnlimited }) else { return }
        expiry.note(remaining: 0, age: rule.pauseAge) { [weak self] in self?.sweepMemory() }
    }

    /// Ends the wait for the next entry that expires: the store is closed.
    package func stopExpiry() { expiry.cancel() }

    private func sweepMemory() {
        let clock = ledger.store.sweepClock
        var sweep = FrontSweep()
        front.withLock { $0.memory.sweeps += 1 }
        while !sweep.isDone {
            // For each slice: a handle may have been opened since that serves more.
            let rules = ledger.ownRules
            let now = clock.moment()
            let discards = front.withLock { front in
                front.removeExpired(&sweep, atMost: Self.entriesPerSlice, rules, now: now)
            }
            // Released where no lock is held.
            _ = consume discards
        }
        front.withLock { front in
            front.memory.sweeps -= 1
            front.memory.giveBackRoom()
        }
        guard let next = sweep.next else { return }
        // While the clock is ahead, an age that began later may end sooner.
        let remaining = clock.moment().isContradicted ? min(next.remaining, next.age) : next.remaining
        expiry.note(remaining: remaining, age: next.age) { [weak self] in self?.sweepMemory() }
    }
}

/// How far a sweep of memory has come.
struct FrontSweep: Sendable {
    var index: UInt32 = 1
    var isDone = false
    /// When the first of the entries that stay expires, in milliseconds from now, and the age that leads to that.
    var next: (remaining: Int64, age: Int64)?
}

extension FrontState {
    /// Takes the entries out that no handle may serve any more; looks at so many at most.
    mutating func removeExpired(
        _ sweep: inout FrontSweep, atMost slice: UInt32, _ rules: [AgeRule], now: SweepMoment
    ) -> [Node] {
        var discards: [Node] = []
        let end = min(sweep.index.addingReportingOverflow(slice).partialValue, memory.table.indexLimit)
        for index in sweep.index..<max(sweep.index, end) where memory.table.isEntry(index) {
            guard let remaining = entry(at: index).remaining(rules, now: now) else { continue }
            if remaining.milliseconds < 0 {
                noteUse(at: index)
                discards.append(memory.remove(index))
            } else if remaining.milliseconds < sweep.next?.remaining ?? .max {
                sweep.next = (remaining.milliseconds, remaining.age)
            }
        }
        sweep.isDone = end >= memory.table.indexLimit
        sweep.index = end
        return discards
    }
}

extension FrontEntry {
    /// How long it is served still by the rule that serves it longest, less than 0 if it has expired; nil for any time.
    func remaining(_ rules: [AgeRule], now: SweepMoment) -> (milliseconds: Int64, age: Int64)? {
        var longest: (milliseconds: Int64, age: Int64)?
        for rule in rules {
            let own = self.rule(else: rule)
            let start = min(self.start(rule, now: now.wall), now.wall)
            guard let end = own.end(start: start) else { return nil }
            let moment = now.now(from: start)
            // An age of nothing is over at its beginning.
            let isOver = own.isExpired(start: start, now: moment)
            let milliseconds = isOver ? -1 : max(0, end.subtractingSaturated(moment))
            if milliseconds > longest?.milliseconds ?? -2 { longest = (milliseconds, own.pauseAge) }
        }
        return longest
    }
}
