extension FrontState {
    /// What memory has at one place of a walk.
    enum Step {
        case entry(key: Key, value: Value)
        /// There, but somebody else has committed since: good if the row still has this revision.
        case unsure(key: Key, value: Value, revision: Int64)
        case end
    }

    /// The next entry of a part of a walk's order that is there and not over.
    mutating func step(
        _ order: [UInt32], from position: inout Int, to end: Int, in walk: UInt64, _ rule: AgeRule, now: Int64,
        round: UInt32
    ) -> Step {
        while position < end {
            let index = order[position]
            position += 1
            guard memory.table.isThere(index, in: walk) else { continue }
            let entry = entry(at: index)
            if isOver(entry, rule, now: now) { continue }
            let key = memory.table.key(at: index)
            if entry.round == round { return .entry(key: key, value: entry.value) }
            return .unsure(key: key, value: entry.value, revision: entry.revision)
        }
        return .end
    }

    /// What memory has of a key, which is not used by that; nil if it has nothing that is not over.
    func glimpse(_ key: Key, hash: UInt64, _ rule: AgeRule, now: Int64) -> Entry? {
        let place = memory.table.locate(key, hash: hash)
        if place.index == 0 { return nil }
        let entry = entry(at: place.index)
        return isOver(entry, rule, now: now) ? nil : entry
    }

    private func isOver(_ entry: Entry, _ rule: AgeRule, now: Int64) -> Bool {
        entry.rule(else: rule).isExpired(start: entry.start(rule, now: now), now: now)
    }
}

extension FrontEntry {
    /// When its age began.
    func start(_ rule: AgeRule, now: Int64) -> Int64 {
        guard self.rule(else: rule).isSliding else { return writtenAt }
        return accessedAt == Self.unknown ? now : accessedAt
    }
}
