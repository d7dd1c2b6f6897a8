internal import LarderLocks

/// A removal of rows in slices, one transaction each: expired rows first, then the least recently used.
struct Eviction {
    /// Another one for each eviction.
    let number: UInt64
    private static let lastNumber = Atomic<UInt64>(0)
    /// A row that was chosen.
    struct Victim: Sendable {
        let row: EntryHeader
        let cache: Int64
        let lastUse: Int64
        /// A Boolean value that indicates whether an access to it is stored.
        let isStamped: Bool
    }

    /// What an eviction has chosen and not needed, for the next one.
    ///
    /// All other rows were used later.
    struct Spare {
        fileprivate let victims: ArraySlice<Victim>
        fileprivate let stampCount: Int
        /// The last commit of another store before the choice.
        let foreignEpoch: UInt32
        fileprivate let latest: Int64
    }

    /// The cache whose rows are removed; nil for those of all.
    let cache: Incarnation?
    /// What there is too little of; nil for rows or bytes over a limit.
    let shortage: RemovedRow.Shortage?
    /// What is left to remove.
    private(set) var rest: Totals
    /// The totals to reach; nil if it ends with a number of rows or bytes.
    private var goal: Totals?
    /// A Boolean value that indicates whether rows that are added in the meantime may stay.
    private let isBounded: Bool
    /// A Boolean value that indicates whether it goes on though the limits of the cache are others by now.
    var isTrim: Bool { isBounded || goal == nil }
    /// The sweep for expired rows; nil once it has ended, after the first 100,000 rows.
    private(set) var sweep: Sweep?
    private var sweptBatches = 0
    private(set) var sweptCount: Int64 = 0
    /// The rows that were chosen and are still to be removed.
    private(set) var victims: ArraySlice<Victim> = []
    /// The highest id at the last choice of victims, if that has found no others; nil if a choice may find more.
    private var lastIDOfAll: Int64?
    private(set) var hasChosen = false
    /// The number of accesses that were stored before the choice, and the last commit of another store.
    private(set) var (stampCount, foreignEpoch) = (0, UInt32(0))
    /// The place in the order of use before which no later write can be.
    private var latestSpare = Int64.min
    /// The number of victims that were needed at the choice and are still to be tried.
    private var neededCount = 0
    /// A Boolean value that indicates whether the last choice has brought nothing yet.
    private var isChoiceInVain = false
    /// Whether enough was removed; nil while more can be.
    var isHeld: Bool?

    /// - Parameters:
    ///   - excess: The rows and bytes to remove.
    ///   - totals: The totals of which the excess is a part, if they are to be reached, though others remove rows too.
    ///   - isBounded: A Boolean value that indicates whether no more than the excess is removed, whatever others add.
    init(
        _ excess: Totals, of totals: Totals? = nil, from cache: Incarnation?, for shortage: RemovedRow.Shortage? = nil,
        isBounded: Bool = false
    ) {
        number = Self.lastNumber.add(1, ordering: .relaxed).newValue
        (rest, self.cache, self.shortage, self.isBounded) = (excess, cache, shortage, isBounded)
        goal = totals.map {
            Totals(
                count: excess.count > 0 ? $0.count - excess.count : .max,
                size: excess.size > 0 ? $0.size - excess.size : .max)
        }
        if isDone { isHeld = true }
    }

    var isDone: Bool { rest.count <= 0 && rest.size <= 0 }
    var hasGoal: Bool { goal != nil }

    /// Lets it begin with a sweep for expired rows.
    mutating func begin(with sweep: Sweep) { self.sweep = sweep }

    /// Notes that a batch of the sweep has removed rows.
    mutating func note(swept: Totals, to sweep: Sweep) {
        rest -= swept
        (sweptBatches, sweptCount) = (sweptBatches + 1, sweptCount + swept.count)
        self.sweep = sweep.next == nil || sweptBatches == 10 ? nil : sweep
    }

    /// Notes that a victim was removed.
    mutating func note(removed: Totals) {
        rest -= removed
        isChoiceInVain = false
    }

    /// Notes that a row counts as removed and stays.
    mutating func note(stays row: Totals) {
        note(removed: row)
        guard let goal else { return }
        self.goal = Totals(count: goal.count.addingSaturated(row.count), size: goal.size.addingSaturated(row.size))
    }

    /// Takes over what other requests have removed or added in the meantime.
    mutating func adjust(to totals: Totals) {
        guard let goal else { return }
        let now = Totals(
            count: max(0, totals.count.subtractingSaturated(goal.count)),
            size: max(0, totals.size.subtractingSaturated(goal.size)))
        rest = isBounded ? Totals(count: min(rest.count, now.count), size: min(rest.size, now.size)) : now
    }

    // MARK: Victims

    /// The number of victims to choose at once: each choice looks at all rows.
    ///
    /// It is more than is needed, so that few evictions have to choose.
    var choiceLimit: Int {
        if rest.size > 0 { return 10_000 }
        return max(min(50_000, Int(clamping: rest.count)), min(20_000, 4 * Int(clamping: min(rest.count, 50_000))))
    }

    /// The victims that are left, but for those that were used in the millisecond of the choice: later writes are before them.
    var spare: Spare? {
        guard hasGoal && !isBounded else { return nil }
        let left = victims.prefix { $0.lastUse < latestSpare }
        if left.isEmpty { return nil }
        return Spare(victims: left, stampCount: stampCount, foreignEpoch: foreignEpoch, latest: latestSpare)
    }

    /// Takes over what another eviction has not needed.
    mutating func take(_ spare: Spare) {
        (victims, neededCount) = (spare.victims, spare.victims.count)
        (stampCount, foreignEpoch, latestSpare) = (spare.stampCount, spare.foreignEpoch, spare.latest)
    }

    /// What the writer knew before a choice.
    struct Basis {
        /// The highest id.
        let lastID: Int64
        /// The number of accesses that were stored.
        let stampCount: Int
        /// The last commit of another store.
        let foreignEpoch: UInt32
        let now: Int64
    }

    /// Takes over chosen victims, at most `limit`.
    mutating func take(_ chosen: [Victim], limit: Int, _ basis: Basis) {
        (stampCount, foreignEpoch) = (basis.stampCount, basis.foreignEpoch)
        latestSpare = basis.now.addingSaturated(basis.now)
        neededCount = rest.size > 0 ? chosen.count : Int(clamping: rest.count)
        (victims, hasChosen, isChoiceInVain) = (chosen[...], true, true)
        lastIDOfAll = chosen.count < limit ? basis.lastID : nil
    }

    var victimCount: Int { victims.count }

    /// Takes over what was chosen for a copy of this eviction.
    mutating func takeVictims(of other: Eviction) {
        (victims, lastIDOfAll, neededCount) = (other.victims, other.lastIDOfAll, other.neededCount)
        (hasChosen, isChoiceInVain) = (other.hasChosen, other.isChoiceInVain)
        (stampCount, foreignEpoch, latestSpare) = (other.stampCount, other.foreignEpoch, other.latestSpare)
    }

    /// Returns whether another choice would find nothing: the last one has found no row that could go, or all there are.
    ///
    /// A damaged index names rows that are not there.
    func isInVain(upTo lastID: Int64) -> Bool { isChoiceInVain || lastIDOfAll == lastID }

    /// Returns the next victim.
    ///
    /// - Parameter foreign: The last commit of another store. After one the excess may be gone, so no more are tried than were
    ///   needed at the choice.
    mutating func nextVictim(after foreign: UInt32) -> Victim? {
        if foreign != foreignEpoch && neededCount <= 0 { victims = [] }
        neededCount -= 1
        return victims.popFirst()
    }

    /// Notes that a row was left out because it was written or read since it was chosen, or that a row was unpinned.
    mutating func noteLeftOut() { lastIDOfAll = nil }
}

/// The part of evictions that a call does before it returns, by the id of each.
struct EvictionShare: Sendable {
    private(set) var rests: [Int64: Totals] = [:]

    var next: Int64? { rests.keys.first }
    var isEmpty: Bool { rests.isEmpty }

    mutating func add(_ id: Int64, _ rest: Totals) {
        let rest = Totals(count: max(0, rest.count), size: max(0, rest.size))
        if rest != Totals() { rests[id, default: Totals()] += rest }
    }

    mutating func add(_ other: EvictionShare) { for (id, rest) in other.rests { add(id, rest) } }

    /// Notes what a slice has removed; nil ends the part.
    mutating func note(_ id: Int64, removed: Totals?) {
        guard let removed, let rest = rests[id].map({ $0 - removed }), rest.count > 0 || rest.size > 0 else {
            rests[id] = nil
            return
        }
        rests[id] = rest
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
    }

    /// The end of the pause after a count of rows, which is ten times as long as the count.
    var counts = Deadline(in: 0)
    /// Between two searches where pins have held all rows.
    var search = Pause(1000)
    /// Between two sweeps that find nothing.
    var sweep = Pause(1000)
    /// Between two looks at a disk whose room another process keeps.
    var space = Pause(60_000)
    /// The ids of the incarnations whose limits pins keep from being held; 0 for those of the store.
    var unmet: Set<Int64> = []

    /// Returns whether pins keep a limit from being held, and it is not to be tried again yet.
    func isUnmet(_ id: Int64, at now: Int64) -> Bool { unmet.contains(id) && !search.isOver(at: now) }

    mutating func forget() { (search, sweep, space, unmet) = (Pause(1000), Pause(1000), Pause(60_000), []) }

    mutating func forgetSearch() { (search, unmet) = (Pause(1000), []) }
}
