internal import LarderSQLite
package import Synchronization

/// What this process knows of one sub-cache's rows beyond the rows themselves, and every read and write of them.
///
/// It knows bytes, not types, so that all of this is compiled once. What is typed, the front in memory, hangs on to it
/// as a ``LedgerFront`` while a handle lives; the ledger stays behind until it has nothing left to write down.
@usableFromInline
package final class RowLedger: Sendable {
    package let name: String
    package let version: String
    package let codec: String
    package let store: Store

    /// Guards what is known; no other lock is taken under it.
    let state: Mutex<RowLedgerState>

    /// The front, and how many handles use it; taken before no other lock.
    private let attachment = Mutex<Attachment>(Attachment())

    private struct Attachment: Sendable {
        var front: (any LedgerFront)?
        var handles = 0
        /// The age of each handle, so that sweeps take nothing that one of them may still serve.
        var rules: [Int: AgeRule] = [:]
        var nextHandle = 0
    }

    /// What sweeps leave an entry after its end, in milliseconds.
    package let keepsExpired = Atomic<Int64>(0)

    /// The same for what generators may still serve, by a number for each that lives.
    private let keepings = Mutex<(next: Int, milliseconds: [Int: Int64])>((0, [:]))

    /// How exactly the moment of the last access is stored.
    package let grain = AccessGrain()

    /// The bytes of the largest entry that the limits on disk allow.
    let largestEntry: Atomic<Int64>

    /// Whether entries are evicted when the disk is full, before a write fails.
    package let evictsOnFullDisk = Atomic(true)

    /// The least age, and the first last moment, of its handles, as a hint to writes.
    let leastAge = Atomic<Int64>(.max)
    let leastDeadline = Atomic<Int64>(.max)

    /// What goes next when there is too much.
    let evicting = Mutex(EvictionQueue())

    /// Whether uses are being written down because they are too many.
    let isFlushingSoon = Atomic(false)

    /// The wait until the uses are written down.
    let flushing = Mutex<Wakeup?>(nil)

    package init(_ generation: Generation, present: StorePresent, binding: GenerationBinding, store: Store) {
        name = generation.name
        version = generation.version
        codec = generation.codec
        self.store = store
        state = Mutex(
            RowLedgerState(present, binding: binding, declared: generation, revisions: store.revisions))
        largestEntry = Atomic(store.policy.sizeLimit ?? .max)
    }

    /// What the queue knows it by.
    package var identity: ObjectIdentifier { ObjectIdentifier(self) }

    /// Whether its rows are of this version and written by this codec.
    package func isOf(version: String, codec: String) -> Bool {
        ExactName(self.version) == ExactName(version) && self.codec == codec
    }

    // MARK: - Handles

    /// The front in use.
    package var front: (any LedgerFront)? { attachment.withLock { $0.front } }

    /// Adds a handle of a front.
    package func attach(_ front: any LedgerFront, _ rule: AgeRule) -> Int {
        attachment.withLock { attachment in
            attachment.front = front
            attachment.handles += 1
            attachment.nextHandle += 1
            attachment.rules[attachment.nextHandle] = rule
            agesChanged(Array(attachment.rules.values))
            return attachment.nextHandle
        }
    }

    /// Takes a handle away; with the last one the front goes, and the ledger once nothing is left to write down.
    package func detach(_ handle: Int) {
        var removed: AgeRule?
        defer { if let removed { lookSoon(after: removed) } }
        // A front that is on its way out is not taken up again.
        let last = store.live.whileNobodyAttaches {
            attachment.withLock { attachment -> (any LedgerFront)? in
                removed = attachment.rules.removeValue(forKey: handle)
                agesChanged(Array(attachment.rules.values))
                attachment.handles -= 1
                guard attachment.handles == 0 else { return nil }
                return attachment.front.take()
            }
        }
        guard let last else { return }
        // What these types could not read the next ones may.
        state.withLock { $0.unreadable = [:] }
        last.retire()
        store.live.drop(self)
    }

    /// The ages that sweeps respect: those of the live handles, of readers that came before the sub-cache too.
    package var liveRules: [AgeRule] { ownRules + store.live.rulesApart(from: name) }

    /// The ages of its own handles.
    package var ownRules: [AgeRule] { attachment.withLock { Array($0.rules.values) } }

    /// Lets sweeps and limits leave entries for so long after their end, until the result is given to ``stopKeeping(_:)``.
    package func keepExpired(for milliseconds: Int64) -> Int {
        keepings.withLock { keepings in
            keepings.next += 1
            keepings.milliseconds[keepings.next] = milliseconds
            return keepings.next
        }
    }

    /// Takes that back.
    package func stopKeeping(_ number: Int) { keepings.withLock { $0.milliseconds[number] = nil } }

    /// For how long after its end anybody wants an entry kept.
    var longestKeeping: Int64 {
        max(keepsExpired.load(ordering: .relaxed), keepings.withLock { $0.milliseconds.values.max() ?? 0 })
    }

    // MARK: - What happens to it

    /// Another version was opened, or it was removed: it shows nothing and writes nothing from now on.
    package func supersede(_ discards: inout Discards) {
        state.withLock { state in
            state.isSuperseded = true
            state.forgetEverything()
        }
        cancelFlush()
        front?.clear(&discards)
        front?.end(&discards)
    }

    /// Another database stands in the place of the one it worked on.
    package func moved(to present: StorePresent, _ discards: inout Discards) {
        let isLate = state.withLock { state in
            // Another one may have come since.
            if present.database < state.database { return true }
            state.database = present.database
            state.watch = present.watch
            state.binding = GenerationBinding()
            state.forgetEverything()
            return false
        }
        if !isLate { front?.moved(to: present, &discards) }
    }

    /// A write that was not its own put another generation in the place of its own.
    package func replaced(by generation: Generation, _ discards: inout Discards) {
        let isOurs = state.withLock { state in
            guard !state.isSuperseded, state.binding.root == generation.root else { return false }
            state.binding.id = generation.id
            state.forgetEverything()
            return true
        }
        if isOurs { front?.clear(&discards) }
    }

    /// The id of the generation.
    package var generation: Int64 { state.withLock { $0.binding.id } }

    package var isSuperseded: Bool { state.withLock { $0.isSuperseded } }

    /// Whether it still is the live generation, as far as anybody has committed by now.
    package func isCurrent() throws(CacheError) -> Bool {
        let (watch, binding, isSuperseded) = state.withLock { ($0.watch, $0.binding, $0.isSuperseded) }
        if isSuperseded { return false }
        if binding.id != 0, watch.round() == binding.round { return true }
        // A look at the generation is part of every read in a new round. One that is not there is made by the next write.
        _ = try readMoment { (_, _) throws(SQLiteError) in true }
        return state.withLock { !$0.isSuperseded }
    }

    package var supersededError: CacheError {
        CacheError(
            .superseded,
            "Sub-cache \"\(name)\" was opened under another version, or removed, since this handle was made for version"
                + " \"\(version)\". Nothing was changed; open it anew.")
    }

    /// Changes the numbers.
    package func count(_ body: (inout LedgerCounts) -> Void) { state.withLock { body(&$0.counts) } }

    package var counts: LedgerCounts { state.withLock { $0.counts } }

    /// What was declared when it was opened last.
    package var declared: Generation { state.withLock { $0.declared } }

    /// When a handle was opened last in this process.
    package var openedAt: Int64 { state.withLock { $0.declared.openedAt } }

    /// Notes another opening while a handle lives, which costs no write.
    package func noteOpening(at moment: Int64) { state.withLock { $0.declared.openedAt = moment } }

    /// Takes what is in the future for now, if the last opening was: the clock was set back, and ages begin anew.
    ///
    /// - Parameter lastOpening: When it was opened before.
    package func noteClock(_ now: Int64, lastOpening: Int64) throws(CacheError) {
        guard NotedUse.isAhead(lastOpening, of: now) else { return }
        clockWasSetBack(to: now)
        try correctMoments()
    }
}

/// The typed half of a sub-cache: what its ledger has to tell it.
package protocol LedgerFront: AnyObject, Sendable {
    /// Nothing that it holds is true any more.
    func clear(_ discards: inout Discards)

    /// Nothing that it holds is true any more, and another database is there.
    func moved(to present: StorePresent, _ discards: inout Discards)

    /// Everything was removed by another process, which the next write comes after.
    func noteClear(_ discards: inout Discards)

    /// It shows nothing any more: nothing will change.
    func end(_ discards: inout Discards)

    /// A manager is closed: those who follow the changes through it learn no more, and nothing is told to what reports
    /// for it.
    func end(for manager: ObjectIdentifier, _ reporter: AnyObject)

    /// What takes the copies of these entries out of memory, in the order of commits, or late, after others.
    func removal(of victims: [RowVictim], _ cause: RemovalCause, isLate: Bool) -> MemoryEffect

    /// There is more than the limits allow, and nothing that may go.
    func limitIsUnmet()

    /// Entries went that no call named.
    func wentAway(_ victims: [RowVictim], _ cause: RemovalCause)

    /// Gives the ledger the uses that have to be written down.
    func handOverUses() throws(CacheError)

    /// The uses that memory knows of these keys; of all keys in memory if nil.
    func uses(of keys: [StoredKey]?) -> [StoredKey: NotedUse]

    /// The clock was set back: what was written in the future counts as written now.
    func clockWasSetBack(to now: Int64)

    /// Gives memory back, unless its options say otherwise.
    func relieve(_ level: MemoryPressure)

    /// Has memory looked through soon, since other ages count from now on.
    func lookSoon()

    /// Ends the wait for what expires next.
    func stopExpiry()

    /// The last handle is gone.
    func retire()
}

/// What happened to the rows of a sub-cache.
package struct LedgerCounts: Sendable {
    package var diskHits = 0
    package var misses = 0
    package var expirations = 0
    package var countEvictions = 0
    package var sizeEvictions = 0
    package var spaceEvictions = 0
    package var deciderEvictions = 0
    package var writes = 0
    package var removals = 0
    package var failures = 0

    package init() {}
}

/// Which rows belong to a sub-cache, in which database, and when that was last looked up.
package struct GenerationBinding: Sendable {
    var database = 0
    var id: Int64 = 0
    var root: Int64 = 0
    /// The round in which its row was known to be live.
    var round: UInt32 = 0

    package init() {}

    /// To rows that may come: there are none of this version.
    package static let awaited = GenerationBinding(database: 0, id: 0, root: -1, round: 0)

    /// Whether that is so still.
    var isAwaited: Bool { root == -1 }

    package init(database: Int, id: Int64, root: Int64, round: UInt32) {
        self.database = database
        self.id = id
        self.root = root
        self.round = round
    }

    /// The binding to a generation that was just looked up.
    package init(_ generation: Generation, _ context: WriteContext) {
        self.init(database: context.database, id: generation.id, root: generation.root, round: context.round)
    }
}

extension Generation {
    /// Whether its entries are worth the same.
    package func isOf(version: String, codec: String) -> Bool {
        ExactName(self.version) == ExactName(version) && self.codec == codec
    }
}
