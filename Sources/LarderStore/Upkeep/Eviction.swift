/// A removal of least recently used rows in batches, between which other requests may run.
struct Eviction {
    typealias Victim = (id: Int64, revision: Int64, lastUse: Int64)

    /// The cache whose rows are removed; nil for those of all.
    let cache: Incarnation?
    /// What there is too little of; nil for rows or bytes over a limit.
    let shortage: RemovedRow.Shortage?
    /// What is left to remove.
    var rest: Totals
    /// The totals to reach; nil if it ends with a number of rows or bytes.
    private(set) var goal: Totals?
    /// The rows that were chosen and are still to be removed.
    var victims: ArraySlice<Victim> = []
    /// A Boolean value that indicates whether no other row can be chosen.
    var areLast = false
    /// The epoch in which the rows were chosen.
    var chosenIn: UInt32 = 0
    /// Whether enough was removed; nil while more can be.
    var isHeld: Bool?

    /// - Parameter totals: The totals of which the excess is a part, if they are to be reached, though other requests remove
    ///   rows too.
    init(
        _ excess: Totals, of totals: Totals? = nil, from cache: Incarnation?, for shortage: RemovedRow.Shortage? = nil
    ) {
        (rest, self.cache, self.shortage) = (excess, cache, shortage)
        goal = totals.map {
            Totals(
                count: excess.count > 0 ? $0.count - excess.count : .max,
                size: excess.size > 0 ? $0.size - excess.size : .max)
        }
    }

    var isDone: Bool { rest.count <= 0 && rest.size <= 0 }

    /// Notes that a row was removed, or counts as removed and stays.
    mutating func note(_ row: EntryHeader, stays: Bool) {
        rest += Totals(count: -1, size: -row.size)
        guard stays, let goal else { return }
        self.goal = Totals(count: goal.count.addingSaturated(1), size: goal.size.addingSaturated(row.size))
    }

    /// Takes over what other requests have removed or added in the meantime.
    mutating func look(at totals: Totals) {
        guard let goal else { return }
        rest = Totals(
            count: max(0, totals.count.subtractingSaturated(goal.count)),
            size: max(0, totals.size.subtractingSaturated(goal.size)))
    }
}

/// What limits wait for, so that nothing is searched in vain at each write.
struct LimitWaits {
    struct Pause {
        private let length: Int64
        private var next = Int64.min

        init(_ milliseconds: Int64) { length = milliseconds }

        /// A pause that is longer than it can be was begun before the clock was set back.
        func isOver(at now: Int64) -> Bool { now >= next || next > now.addingSaturated(length) }
        mutating func begin(at now: Int64) { next = now.addingSaturated(length) }
        mutating func end() { next = .min }
    }

    /// Between two counts of all rows, or searches where pins have held all rows.
    var search = Pause(1000)
    /// Between two sweeps that find nothing.
    var sweep = Pause(1000)
    /// Between two looks at a disk whose room another process keeps.
    var space = Pause(60_000)
    /// The ids of the incarnations whose limits pins keep from being held; 0 for those of the store.
    var unmet: Set<Int64> = []
}
