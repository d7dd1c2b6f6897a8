internal import LarderSQLite

/// The upkeep of a store in which something expires: its rows are deleted soon after, also without traffic.
///
/// One timer waits for the earliest end of which anybody knows. A write notes its own; after a sweep the rows are asked
/// for theirs. `maintenanceInterval` of nil switches all of this off.
extension Store {
    /// How long to wait before another try, in milliseconds, after a sweep that failed or left what it should delete.
    private static let retryPause: Int64 = 600_000

    /// A Boolean value that indicates whether expired rows are deleted without a call.
    var sweepsOnTime: Bool { policy.maintenanceInterval != nil && !isReadOnly && !isClosed }

    /// Notes that a row expires after a moment of the clock.
    func noteEnd(_ end: Int64, age: Int64) {
        guard expiry.isNews(end), sweepsOnTime else { return }
        expiry.note(end: end, age: age) { [weak self] in self?.sweepOnTime() }
    }

    /// Sees to it that the rows are asked soon when the next of them expires: another age may count from now on.
    func lookSoon(_ rule: AgeRule) {
        if !rule.isUnlimited { lookSoon(age: rule.pauseAge) }
    }

    /// Sees to it that the rows are asked soon when the next of them expires.
    func lookSoon(age: Int64) {
        if sweepsOnTime { note(remaining: 0, age: age) }
    }

    private func note(remaining: Int64, age: Int64) {
        expiry.note(remaining: remaining, age: age) { [weak self] in self?.sweepOnTime() }
    }

    private func sweepOnTime() {
        guard sweepsOnTime else { return }
        do throws(CacheError) {
            guard var next = try nextEnd() else { return }
            if next.remaining < 0 {
                _ = try sweepAll()
                guard let left = try nextEnd() else { return }
                next = left
                // Nothing that is over should be left. A row that is all the same is not worth a sweep each time.
                if next.remaining < 0 { next.remaining = max(next.age, Self.retryPause) }
            }
            note(remaining: next.remaining, age: next.age)
        } catch {
            if error.code == .closed { return }
            notify(.backgroundFailure(error))
            note(remaining: Self.retryPause, age: 0)
        }
    }

    /// How long the first of all rows is served still, in milliseconds, less than 0 if it has expired, and the age that leads to
    /// that; nil where none expires.
    ///
    /// - Complexity: O(n) over the rows of caches with a maximum age, in one query each.
    private func nextEnd() throws(CacheError) -> (remaining: Int64, age: Int64)? {
        let now = sweepClock.moment()
        let generations = try read { (c, _) throws(SQLiteError) in try c.liveGenerations() }
        var next: (remaining: Int64, age: Int64)?
        for generation in generations {
            var (rules, grace) = (
                [generation.age.rule] + live.rulesApart(from: generation.name), generation.keepsExpired
            )
            if let ledger = live[generation.name], !ledger.isSuperseded {
                let found = try unlessSuperseded(else: nil) { () throws(CacheError) in try ledger.sweepTerms() }
                if let found { (rules, grace) = (found.rules, found.keeping) }
            }
            let earliest = try read { (c, _) throws(SQLiteError) in try c.earliestMoments(generation.id) }
            for end in earliest.ends(rules, grace: grace, now: now.wall) {
                // Of an age of its own the start is not known; the clock's answer costs a look too many at worst.
                var remaining = end.moment.subtractingSaturated(now.wall)
                if now.isContradicted {
                    if remaining < 0 { remaining = end.moment.subtractingSaturated(now.elapsed) }
                    // An age that began after the clock was set ahead may end sooner.
                    remaining = min(remaining, max(end.age, Self.retryPause))
                }
                if remaining < next?.remaining ?? .max { next = (remaining, end.age) }
            }
        }
        return next
    }
}

extension EarliestMoments {
    /// The ends that follow for the rows without an age of their own, and for those with one.
    fileprivate func ends(_ rules: [AgeRule], grace: Int64, now: Int64) -> [(moment: Int64, age: Int64)] {
        var ends: [(moment: Int64, age: Int64)] = []
        if let written, let accessed {
            // A moment in the future means that the clock was set back, which a sweep writes down.
            if written > now.addingSaturated(1000) { ends.append((now - 1, 0)) }
            let last = rules.map { rule -> (moment: Int64, age: Int64) in
                let start = rule.isSliding ? accessed : written
                let grace = rule.isSliding ? max(grace, RowLedger.longestNote) : grace
                return (rule.end(start: min(start, now))?.addingSaturated(grace) ?? .max, rule.pauseAge)
            }
            // The rule by which it is served longest decides.
            if let end = last.max(by: { $0.moment < $1.moment }), end.moment < .max { ends.append(end) }
        }
        if let ownEnd, ownEnd < .max { ends.append((ownEnd.addingSaturated(max(grace, RowLedger.longestNote)), 0)) }
        return ends
    }
}
