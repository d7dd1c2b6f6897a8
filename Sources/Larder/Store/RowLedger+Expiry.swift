internal import Synchronization

/// What a ledger tells the timers.
extension RowLedger {
    /// Tells the store when a row expires that was written.
    func noteEnd(writtenAt: Int64, age: StoredAge?) {
        guard let earliest = earliestEnd(writtenAt, age), store.expiry.isNews(earliest) else { return }
        // Other handles may serve it longer, and generators want it kept.
        let rules = age.map { [$0.rule] } ?? liveRules
        let ends = rules.map { rule -> Int64 in
            let grace = rule.isSliding ? max(longestKeeping, Self.longestNote) : longestKeeping
            return rule.end(start: writtenAt)?.addingSaturated(grace) ?? .max
        }
        guard let end = ends.max() else { return }
        store.noteEnd(end, age: rules.map(\.pauseAge).min() ?? 0)
    }

    /// The moment before which no handle lets an entry expire that began then, as a hint; nil if it never expires.
    func earliestEnd(_ start: Int64, _ age: StoredAge?) -> Int64? {
        if let age { return age.rule.end(start: start) }
        let end = min(start.addingSaturated(leastAge.load(ordering: .relaxed)), leastDeadline.load(ordering: .relaxed))
        return end == .max ? nil : end
    }

    /// The ages of its handles are others: what is there may expire sooner.
    func agesChanged(_ rules: [AgeRule]) {
        leastAge.store(rules.map(\.maximum).min() ?? .max, ordering: .relaxed)
        leastDeadline.store(rules.map(\.deadline).min() ?? .max, ordering: .relaxed)
        let isLimited = !state.withLock({ $0.limits.isNone }) || store.policy.needsCare
        grain.adapt(to: rules, isLimited: isLimited)
    }

    /// Has memory and rows looked after soon: a handle is gone that served entries longer than the others, perhaps.
    func lookSoon(after rule: AgeRule) {
        let rules = front == nil ? [declared.age.rule] : ownRules
        guard let next = rules.first(where: { $0 != rule && !$0.isUnlimited }) else { return }
        front?.lookSoon()
        store.lookSoon(next)
    }
}
