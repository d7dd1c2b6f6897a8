internal import LarderSQLite
internal import Synchronization

/// The opening of one handle: finds the sub-cache that is in use, or the generation on disk, or makes a new one.
struct CacheOpening<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    let name: String
    let version: CacheVersion
    let codec: String
    let options: CacheOptions
    let rule: AgeRule
    let openedAt: Int64
    /// The clock by which it is, read again where others may have been waited for.
    let clock: @Sendable () -> Int64
    let store: Store
    let isReadOnly: Bool
    let reporter: Reporter

    typealias Opened = (core: SubCache<Key, Value>, handle: Int)

    private enum Outcome {
        /// One that was in use.
        case joined(Opened)
        /// One whose generation was found or made, and may have taken the place of another.
        case made(Opened, Found)
        case shown(Opened)
    }

    func open() throws(CacheError) -> Opened {
        if let opened = try joined() { return try declared(opened) }
        try store.inside.refuseCurrent("open a sub-cache that is not in use")
        // What happens meanwhile is told, and what leaves memory released, where nothing is held.
        defer { store.tellUntold() }
        let outcome = try store.live.opening { () throws(CacheError) -> Outcome in
            if let opened = try joined() { return .joined(opened) }
            return isReadOnly || store.isReadOnly ? .shown(try openReadOnly()) : try openOnDisk()
        }
        // Where nothing is held: it tells the log, and evicts.
        switch outcome {
        case .joined(let opened): return try declared(opened)
        case .made(let opened, let found): return try followed(opened, found)
        case .shown(let opened): return opened
        }
    }

    // MARK: - In use

    /// The sub-cache that is in use, if it is of this version.
    private func joined() throws(CacheError) -> Opened? {
        guard let ledger = store.live[name], ledger.isOf(version: version.text, codec: codec),
            try ledger.isCurrent()
        else { return nil }
        let present = try store.present()
        let attached = store.live.attach(ledger, rule) {
            $0 is SubCache<Key, Value>
        } make: {
            SubCache<Key, Value>(ledger: ledger, limits: options.memory, present: present)
        }
        switch attached {
        case .gone: return nil
        case .unwanted:
            throw CacheError(
                .typeMismatch,
                "Cache \"\(name)\" is in use with other types than \(Key.self) and \(Value.self). Use these, or let go of"
                    + " the other handle, or open another version.")
        case .attached(let front, let handle):
            guard let core = front as? SubCache<Key, Value> else { return nil }
            followStore(core.ledger, from: present)
            return (core, handle)
        }
    }

    private func declared(_ opened: Opened) throws(CacheError) -> Opened {
        do throws(CacheError) {
            try tolerant { () throws(CacheError) in try declare(on: opened.core) }
        } catch {
            opened.core.ledger.detach(opened.handle)
            throw error
        }
        return opened
    }

    /// What belongs to the sub-cache is set by the latest open.
    private func declare(on core: SubCache<Key, Value>) throws(CacheError) {
        core.add(reporter)
        core.relieves.withLock { $0 = options.clearsOnMemoryPressure }
        core.clearsInBackground(options.clearsInBackground)
        let ledger = core.ledger
        if core.front.withLock({ $0.limits }) != options.memory.counted { core.limitMemory(to: options.memory) }
        let (old, new) = (ledger.declared, declaration)
        if isReadOnly { return }
        ledger.keepsExpired.store(keepsExpired, ordering: .relaxed)
        ledger.evictsOnFullDisk.store(options.onFullDisk == .evict, ordering: .relaxed)
        ledger.grain.choose(accessGrain)
        if store.inside.containCurrent { return }
        try ledger.setLimits(limits)
        let lastOpening = ledger.openedAt
        ledger.noteOpening(at: openedAt)
        if old.age != new.age || old.keepsExpired != new.keepsExpired {
            try ledger.declare(new)
        }
        // What is there may expire sooner by this age.
        if old.age != new.age { store.lookSoon(rule) }
        try ledger.noteClock(clock(), lastOpening: lastOpening)
    }

    private var limits: RowLimits { RowLimits(count: options.disk.countLimit, size: options.disk.sizeLimit) }

    private var keepsExpired: Int64 {
        SystemClock.saturated(max(0, options.keepsExpired / .milliseconds(1)))
    }

    private var accessGrain: Int64? {
        options.accessGrain.map { SystemClock.saturated($0 / .milliseconds(1)) }
    }

    /// What is written down of this opening.
    private var declaration: Generation {
        var generation = Generation(
            name: name, version: version.text, codec: codec, age: StoredAge(rule), openedAt: openedAt)
        generation.keepsExpired = keepsExpired
        return generation
    }

    // MARK: - On disk

    private struct Found: Sendable {
        var generation: Generation
        var binding: GenerationBinding
        let present: StorePresent
        /// The version of what was purged, if anything was.
        var purged: String?
        /// Whether rows wait to be reclaimed, of this purge or of one over which a process died.
        var isAnyRetired = false
        /// When it was opened before, if it was.
        var lastOpening: Int64?
        /// The least age by which rows that were there may expire; nil if none does.
        var leastAge: Int64?
    }

    /// Finds the live generation, or retires it and makes another, in one transaction.
    private func openOnDisk() throws(CacheError) -> Outcome {
        let made = Mutex<Opened?>(nil)
        let found: Found
        do throws(CacheError) {
            found = try store.write(BlockTraits(isAlone: true)) { (connection, context) throws(SQLiteError) in
                var found = try find(&connection, context)
                found.isAnyRetired = try connection.retiredGeneration() != nil
                return found
            } apply: { found, _ in
                // While nobody else writes, so that no write of the old handles comes after it.
                let old = store.live[name]
                made.withLock { $0 = make(found) }
                // Not released with the request: other openings wait for this one.
                var discards = Discards()
                old?.supersede(&discards)
                store.release(discards)
            }
        } catch {
            // What is there can be used although nothing can be written down.
            guard error.code == .storageFull, let shown = try foundOnDisk() else { throw error }
            var discards = Discards()
            store.live[name]?.supersede(&discards)
            store.tell([.backgroundFailure(error)], releasing: discards)
            return .made(make(shown), shown)
        }
        guard let opened = made.withLock({ $0 }) else { preconditionFailure("A sub-cache was opened and not made.") }
        return .made(opened, found)
    }

    /// Does what follows an opening on disk.
    private func followed(_ opened: Opened, _ found: Found) throws(CacheError) -> Opened {
        if let purged = found.purged {
            opened.core.report(
                .purged(version: .custom(purged)),
                "Cache \"\(name)\" was purged: it was written as version \"\(purged)\" and opened as \"\(version)\".",
                .info)
        }
        if found.isAnyRetired { store.reclaimer.begin(store) }
        if let age = found.leastAge { store.lookSoon(age: age) }
        do throws(CacheError) {
            try tolerant { () throws(CacheError) in
                if let moment = found.lastOpening {
                    try opened.core.ledger.noteClock(clock(), lastOpening: moment)
                }
                try opened.core.ledger.setLimits(limits)
            }
        } catch {
            opened.core.ledger.detach(opened.handle)
            throw error
        }
        return opened
    }

    /// Does what an opening writes beside its own purpose: a full volume does not refuse the handle.
    private func tolerant(_ body: () throws(CacheError) -> Void) throws(CacheError) {
        do throws(CacheError) {
            try body()
        } catch {
            guard error.code == .storageFull else { throw error }
            store.notify(.backgroundFailure(error))
        }
    }

    private func find(_ connection: inout Connection, _ context: WriteContext) throws(SQLiteError) -> Found {
        var purged: String?
        // Of all caches: the first that is opened sees to the rows of those that nobody opens.
        let leastAge = try connection.leastAge()
        if var live = try connection.liveGeneration(named: name) {
            if live.isOf(version: version.text, codec: codec) {
                let lastOpening = live.openedAt
                try connection.declare(
                    live.id, age: StoredAge(rule), keepsExpired: keepsExpired, openedAt: openedAt)
                live.age = StoredAge(rule)
                live.keepsExpired = keepsExpired
                live.openedAt = openedAt
                return Found(
                    generation: live, binding: GenerationBinding(live, context), present: context.present,
                    lastOpening: lastOpening,
                    leastAge: rule.isUnlimited ? leastAge : min(leastAge ?? .max, rule.pauseAge))
            }
            try connection.retire(live.id)
            purged = live.version
        }
        let generation = try connection.insert(declaration)
        return Found(
            generation: generation, binding: GenerationBinding(generation, context), present: context.present,
            purged: purged, leastAge: leastAge)
    }

    /// Makes the ledger and the front of a generation, and puts them in the place of what was in use.
    private func make(_ found: Found, isListed: Bool = true) -> Opened {
        let ledger = RowLedger(found.generation, present: found.present, binding: found.binding, store: store)
        // Who only reads changes nothing of what sweeps go by.
        ledger.keepsExpired.store(isReadOnly ? found.generation.keepsExpired : keepsExpired, ordering: .relaxed)
        ledger.grain.choose(accessGrain)
        ledger.evictsOnFullDisk.store(!isReadOnly && options.onFullDisk == .evict, ordering: .relaxed)
        let core = SubCache<Key, Value>(ledger: ledger, limits: options.memory, present: found.present)
        core.relieves.withLock { $0 = options.clearsOnMemoryPressure }
        core.clearsInBackground(options.clearsInBackground)
        core.add(reporter)
        let handle = ledger.attach(core, rule)
        if isListed {
            store.live[name] = ledger
            followStore(ledger, from: found.present)
        } else {
            store.live.addApart(ledger)
        }
        return (core, handle)
    }

    /// Moves on to the database that took the place of `present` before anybody could tell this ledger, or its front.
    private func followStore(_ ledger: RowLedger, from present: StorePresent) {
        guard let current = store.database?.present, current.database != present.database else { return }
        var discards = Discards()
        ledger.moved(to: current, &discards)
        store.release(discards)
    }

    /// The live generation, if it is of this version; nothing is written.
    ///
    /// It was found outside the order of writes, and may be emptied or replaced by now: it is bound to no round, so that the
    /// first read and the first write look again.
    private func foundOnDisk() throws(CacheError) -> Found? {
        let (name, version, codec) = (name, version.text, codec)
        let present = try store.present()
        return try store.read { (connection, database) throws(SQLiteError) -> Found? in
            guard let live = try connection.liveGeneration(named: name), live.isOf(version: version, codec: codec)
            else {
                return nil
            }
            return Found(
                generation: live,
                binding: GenerationBinding(
                    database: database, id: live.id, root: live.root, round: CommitWatch.noRound),
                present: present, isAnyRetired: try connection.retiredGeneration() != nil)
        }
    }

    /// Shows what is there if it is of this version, and nothing if it is not.
    private func openReadOnly() throws(CacheError) -> Opened {
        let present = try store.present()
        let found = try foundOnDisk()
        // What is not there may come. It is looked for with every read, by a ledger of its own that keeps no copies and
        // stands in nobody's way: the writes of this process are not told to it.
        let nothing = StorePresent(
            database: present.database, watch: CommitWatch(nil, isBlind: true), allowsCopies: false,
            blobs: present.blobs)
        guard let found else {
            return make(Found(generation: declaration, binding: .awaited, present: nothing), isListed: false)
        }
        var discards = Discards()
        store.live[name]?.supersede(&discards)
        store.release(discards)
        return make(found)
    }
}
