internal import LarderSQLite
internal import Synchronization

/// Reads never write: an access that is to be written down is noted in memory, and written after a while.
extension RowLedger {
    /// How long a use may stay in memory alone where the grain is small.
    package static let longestNote: Int64 = 10_000

    /// How many notes are kept, and with an exact grain written down without waiting.
    static let mostNotes = 10_000

    /// How many of them share a transaction.
    private static let notesPerSlice = 256

    /// Notes uses that are to be written down.
    package func note(_ notes: [(key: StoredKey, use: NotedUse)]) {
        let count = state.withLock { state in
            for (key, use) in notes where (state.uses[key]?.used ?? .min) < use.used { state.note(key, use, grain) }
            return state.uses.count
        }
        if count > 0 { flushLater(count) }
    }

    /// Notes a use of an entry that memory does not hold, if it is to be written down.
    package func noteUse(_ key: StoredKey, _ facts: EntryFacts, at moment: Int64) {
        guard grain.isStale(facts.accessedAt, age: facts.age, at: moment) else { return }
        let use = NotedUse(accessedAt: moment, used: store.revisions.next())
        let count = state.withLock { state in
            state.note(key, use, grain)
            return state.uses.count
        }
        if count == 1 || count >= Self.mostNotes { flushLater(count) }
    }

    /// Sees to it that so many notes are written down.
    func flushLater(_ count: Int) {
        scheduleFlush()
        if count >= Self.mostNotes, grain.isExact { flushSoon() }
    }

    /// The uses of these keys that this process knows, and that are not written down.
    func uses(of keys: [StoredKey]) -> [StoredKey: NotedUse] {
        if keys.isEmpty { return [:] }
        let noted = state.withLock { $0.uses }
        var uses = front?.uses(of: keys) ?? [:]
        if noted.isEmpty { return uses }
        for key in keys {
            guard let use = noted[key], use.used > uses[key]?.used ?? .min else { continue }
            uses[key] = use
        }
        return uses
    }

    /// All uses that this process knows, and that are not written down.
    func knownUses() -> [StoredKey: NotedUse] {
        let noted = state.withLock { $0.uses }
        return (front?.uses(of: nil) ?? [:]).merging(noted) { $0.used > $1.used ? $0 : $1 }
    }

    /// Sees to it that what is read from now on is written down.
    package func scheduleFlush() {
        guard !store.isReadOnly, !store.isClosed else { return }
        flushing.withLock { wakeup in
            guard wakeup == nil else { return }
            // Whoever has something left to write down is among the live ones until then.
            wakeup = store.timekeeper.wake(.milliseconds(grain.wait)) { [weak self] in
                self?.flushInBackground()
            }
        }
    }

    /// Writes the notes down on a thread of the system's: they are too many.
    private func flushSoon() {
        // One at a time; after a failure not before the timer has tried again.
        guard !store.isReadOnly, !store.isClosed,
            !isFlushingSoon.exchange(true, ordering: .acquiringAndReleasing)
        else { return }
        offloadInBackground { [self] in flushInBackground() }
    }

    private func flushInBackground() {
        do throws(CacheError) {
            try flushUses()
        } catch {
            if error.code != .closed, error.code != .superseded { store.notify(.backgroundFailure(error)) }
        }
    }

    /// Ends the wait, where nobody is interested any more.
    package func cancelFlush() {
        flushing.withLock { $0.take() }?.cancel()
    }

    /// Whether everything that was noted is written down.
    package var isSettled: Bool {
        state.withLock { state in
            state.uses.isEmpty && (state.setBacks.isEmpty || store.isReadOnly) || state.isSuperseded
        }
    }

    /// Writes down the accesses that are to be written down, and that the clock was set back.
    package func flushUses() throws(CacheError) {
        cancelFlush()
        // What is noted meanwhile, or cannot be written down now, is for the next time.
        defer { if !isSettled { scheduleFlush() } }
        try front?.handOverUses()
        guard !store.isReadOnly else { return }
        try correctMoments()
        let uses = state.withLock { $0.uses }
        try inSlices(Array(uses), of: Self.notesPerSlice) { (slice) throws(CacheError) in
            try write(down: slice)
        }
        isFlushingSoon.store(false, ordering: .releasing)
        // Where nobody uses it any more, it was kept for this.
        store.live.drop(self)
    }

    private func write(down notes: [(key: StoredKey, value: NotedUse)]) throws(CacheError) {
        let now = store.timekeeper.now()
        // A row grows with its first use.
        try write(BlockTraits(pages: .max)) { (connection, place) throws(SQLiteError) in
            for (key, use) in notes {
                let moment = use.accessedAt == NotedUse.unknownMoment ? now : use.accessedAt
                try connection.touch(place.generation, key, at: moment, used: use.used)
            }
        } apply: { _, _ in
            self.state.withLock { state in
                for (key, use) in notes where state.uses[key]?.used == use.used { state.uses[key] = nil }
            }
        }
    }

    /// Corrects the rows that are from before the clock was set back.
    func correctMoments() throws(CacheError) {
        let setBacks = state.withLock { $0.setBacks }
        if setBacks.isEmpty || store.isReadOnly { return }
        try write(BlockTraits(pages: .max)) { (connection, place) throws(SQLiteError) in
            for setBack in setBacks {
                try connection.correctMoments(place.generation, to: setBack.moment, writtenBefore: setBack.revision)
            }
            // Those that come get greater ones, also where ours are ahead of the clock.
            let number = min(self.store.revisions.next(), RevisionSource.end(of: SystemClock.now()))
            try connection.renumber(place.generation, above: number)
        } apply: { _, _ in
            self.state.withLock { $0.noteCorrected(setBacks) }
        }
    }
}

extension RowLedger {
    /// Does the same before something is removed.
    ///
    /// On a full disk the uses stay in memory, where this process counts them.
    func flushUsesWhereRoom() throws(CacheError) {
        do throws(CacheError) {
            try flushUses()
        } catch {
            if error.code != .storageFull { throw error }
        }
    }
}

extension Store {
    /// Writes down what every sub-cache in use has noted; one that was superseded has nothing to say.
    package func flushUses() throws(CacheError) {
        for ledger in live.all {
            do throws(CacheError) {
                try ledger.flushUses()
            } catch  where error.code == .superseded {
                continue
            }
        }
    }
}
