/// The time for which a key is known to have no value.
struct Absence {
    let rule: AgeRule
    /// In milliseconds.
    let since: Int64
}

extension LoadMachine {
    /// The number of absences that are remembered; beyond it the expired ones are forgotten, or else all.
    package static var mostAbsences: Int { 10_000 }

    /// Whether a write could change nothing here.
    package var isUnaffectedByWrites: Bool { isIdle && absences.isEmpty }

    /// Remembers that there is no value for a key, if nothing else was written while its load ran.
    ///
    /// - Returns: The keys that are forgotten, to be released outside the lock.
    package mutating func noteAbsence(_ key: Key, of load: LoadID, for rule: AgeRule, now: Int64) -> [Key] {
        guard racers(key).contains(load), !rule.isExpired(start: now, now: now) else { return [] }
        var forgotten: [Key] = []
        if absences.count >= Self.mostAbsences {
            forgotten = Array(absences.keys)
            absences = absences.filter { !$1.rule.isExpired(start: $1.since, now: now) }
            if absences.count >= Self.mostAbsences { absences = [:] }
        }
        absences[key] = Absence(rule: rule, since: now)
        return forgotten
    }

    /// Returns whether a key is known to have no value.
    package func isAbsent(_ key: Key, now: Int64) -> Bool {
        absences[key].map { !$0.rule.isExpired(start: $0.since, now: now) } ?? false
    }
}
