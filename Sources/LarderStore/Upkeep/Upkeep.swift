internal import LarderLocks
internal import LarderSQLite

/// Does the chores of a store on a timer: accesses, expired rows, limits, retired rows, orphaned files, the log.
///
/// It has one timer, and none while nothing can be due. It runs on the timer's thread, in transactions of at most 500 rows.
final class Upkeep: Sendable {
    private struct State {
        /// Nil once it is stopped.
        var writer: Writer?
        /// The moment of the timer, by the store's clock.
        var due: Int64?
        var cancelTimer: (@Sendable () -> Void)?
        /// A Boolean value that indicates whether no timer is set until the store is resumed.
        var isPaused = false
        /// A Boolean value that indicates whether the timer's thread does chores, or an erase does.
        var isRunning = false
        /// The earliest moments of the next sweeps of rows and of files, and that of the last write of counters.
        var (nextSweep, lastActivity) = (Int64.min, Int64.min)
        var nextFileSweep = Int64.min

        init(_ writer: Writer) { self.writer = writer }

        /// Returns whether nothing else was running.
        mutating func begin() -> Bool {
            defer { isRunning = true }
            return !isRunning
        }
    }

    private let time: StoreTime
    /// A Boolean value that indicates whether no timer is ever set.
    let isManual: Bool
    private let state: Mutex<State>
    /// The moment of the timer, for a look without the lock.
    private let due = Atomic<Int64>(.max)

    init(_ writer: Writer, _ time: StoreTime, isManual: Bool) {
        (self.time, self.isManual) = (time, isManual)
        state = Mutex(State(writer))
    }

    // MARK: The timer

    /// Schedules the chores at a moment.
    func ask(at moment: Int64, from now: Int64) {
        guard !isManual, moment < due.load(ordering: .relaxed) else { return }
        // The later timer is cancelled outside the lock.
        let later = state.withLock { state -> (@Sendable () -> Void)? in
            guard state.writer != nil, !state.isPaused, moment < state.due ?? .max else { return nil }
            let later = state.cancelTimer
            state.due = moment
            due.store(moment, ordering: .relaxed)
            let delay = max(0, moment.subtractingSaturated(now))
            state.cancelTimer = time.wake(delay) { [self] in run(moment) }
            return later
        }
        later?()
    }

    /// Schedules the chores after a row expires.
    ///
    /// They begin within a sixteenth of the time until then: at least a second, at most a minute.
    func ask(forRemovalAt moment: Int64, from now: Int64) {
        let moment = max(moment, now)
        let slack = min(60_000, max(1000, moment.subtractingSaturated(now) / 16))
        ask(at: moment.addingSaturated(slack), from: now)
    }

    /// Cancels the timer, and ends running chores with their batch; later calls schedule nothing.
    func stop() {
        let (writer, cancel) = state.withLock { state in
            defer { (state.writer, state.cancelTimer) = (nil, nil) }
            return (state.writer, state.cancelTimer)
        }
        cancel?()
        withExtendedLifetime(writer) {}
    }

    /// Cancels the timer until ``resume()``; running chores end with their batch.
    func pause() {
        let cancel = state.withLock { state in
            defer { (state.isPaused, state.due, state.cancelTimer) = (true, nil, nil) }
            due.store(.max, ordering: .relaxed)
            return state.cancelTimer
        }
        cancel?()
    }

    func resume() {
        state.withLock { $0.isPaused = false }
        let now = time.now()
        ask(at: now.addingSaturated(1000), from: now)
    }

    private func run(_ moment: Int64) {
        let isFirst = state.withLock { state -> Bool? in
            guard state.due == moment else { return nil }
            (state.due, state.cancelTimer) = (nil, nil)
            due.store(.max, ordering: .relaxed)
            return state.begin()
        }
        guard let isFirst else { return }
        let now = time.now()
        // One timer's thread at a time.
        guard isFirst else { return ask(at: now.addingSaturated(1000), from: now) }
        do throws(StoreError) {
            _ = try doChores(isWhole: false)
        } catch {
            if error.code != .closed && error.code != .suspended {
                ask(at: now.addingSaturated(60_000), from: now)
                do throws(StoreError) { try writer.report(.upkeepFailed(error)) } catch {}
            }
        }
        state.withLock { $0.isRunning = false }
    }

    // MARK: The chores

    /// Does the chores that are due, or all there are.
    func doChores(isWhole: Bool) throws(StoreError) -> MaintenanceReport {
        try writer.noting { () throws(StoreError) in try doAll(isWhole) }
    }

    private func doAll(_ isWhole: Bool) throws(StoreError) -> MaintenanceReport {
        let now = time.now()
        var report = MaintenanceReport()
        report.expired = try sweepRows(now, isWhole: isWhole)
        try retireMigrations()
        report.reclaimed = try reclaim()
        report.trimmed = try writer.holdLimits(at: now, isWhole: isWhole)
        report.orphans = try sweepFiles(now, isWhole: isWhole)
        // On a full disk there may be no page for them before rows were removed.
        try storeAccesses()
        try writeActivity(now, isWhole: isWhole)
        if isWhole {
            try writer.database.files?.emptyPool()
            let size = try writer.read { $0.connection.fileSize }
            try writer.giveBackPages(.max)
            try writer.read {
                let kept = $0.logKeeper.isShort ? Ballast.maxSize : 0
                // A log that has begun again is as long as before.
                if $0.connection.logPages < 10 && $0.connection.logFileSize <= kept + 100_000 {
                    $0.copyLog()
                } else {
                    _ = try $0.emptyLog(keeping: Int(kept))
                }
            }
            report.freedBytes = max(0, size - (try writer.read { $0.connection.fileSize }))
        } else {
            try writer.read { if $0.uncopiedPages >= 100 { $0.copyLog() } }
        }
        return report
    }

    /// Clears a cache, and returns when none of the removed bytes is left in the files of the store.
    ///
    /// The timer's thread waits in the meantime.
    ///
    /// - Parameter progress: Called with the number of deleted rows after each batch.
    func erase(_ progress: (Int) -> Void, _ clear: () throws(StoreError) -> Void) throws(StoreError) {
        let deadline = Deadline(in: try writer.read { $0.busyTimeout })
        while !state.withLock({ $0.begin() }) { try deadline.pause() }
        defer { state.withLock { $0.isRunning = false } }
        try clear()
        _ = try reclaim(progress)
        let files = try writer.database.files
        files?.finish()
        files?.emptyPool()
        try writer.read { state in
            state.connection.setBusyTimeout(Int32(clamping: state.busyTimeout))
            try state.watch.ownCommit { () throws(SQLiteError) in try state.connection.vacuum() }
        }
        let end = Deadline(in: try writer.read { $0.busyTimeout })
        while try !writer.read({ try $0.emptyLog() }) {
            // The next read of each connection of another store follows the last commit, and the one after the copy leaves the log.
            try end.pause()
            try writer.read { $0.copyLog() }
            try end.pause()
        }
    }

    /// Throws `.closed` once upkeep is stopped, which ends running chores.
    private var writer: Writer {
        get throws(StoreError) {
            guard let writer = state.withLock({ $0.writer }) else { throw .closed }
            return writer
        }
    }

    /// Runs one of many transactions, before which the threads that wait for the writer have it.
    private func runBatch<R>(_ body: (WriterState) throws -> R) throws(StoreError) -> R {
        let writer = try writer
        writer.lock.letOthersIn()
        return try writer.runBatch(body)
    }

    func storeAccesses() throws(StoreError) {
        let now = time.now()
        let writer = try writer
        try writer.read { $0.now = now }
        try writer.noteMemory()
        let accesses = writer.accesses.take()
        var isStored = false
        defer { if !isStored { writer.accesses.putBack(accesses) } }
        for batch in accesses.batches() { try runBatch { for access in batch { try $0.store(access) } } }
        isStored = true
    }

    private func writeActivity(_ now: Int64, isWhole: Bool) throws(StoreError) {
        guard isWhole || now >= state.withLock({ $0.lastActivity.addingSaturated(3_600_000) }) else { return }
        try writer.runBatch { try $0.writeActivity(at: now) }
        state.withLock { $0.lastActivity = now }
    }

    /// Removes expired rows, and schedules the next sweep.
    ///
    /// That begins at least twenty times this sweep's duration later.
    private func sweepRows(_ now: Int64, isWhole: Bool) throws(StoreError) -> Int {
        try writer.countForSweep()
        guard let first = try writer.read({ $0.nextRemoval }) else { return 0 }
        var (count, earliest) = (0, state.withLock { $0.nextSweep })
        if first < now, isWhole || now >= earliest {
            var sweep = Sweep(now: now)
            while sweep.next != nil { count += try runBatch { try $0.sweepBatch(&sweep).count } }
            try writer.read { $0.endSweep(sweep) }
            try writer.countForSweep()
            earliest = now.addingSaturated(20 * min(max(0, time.now().subtractingSaturated(now)), 1 << 40))
            state.withLock { $0.nextSweep = earliest }
        }
        if let next = try writer.read({ $0.nextRemoval }) { ask(forRemovalAt: max(next, earliest), from: now) }
        return count
    }

    /// Retires what interrupted migrations have left, unless one runs.
    private func retireMigrations() throws(StoreError) {
        guard let file = try writer.database.file,
            try writer.read({ try $0.connection.number(.migratingIncarnation) }) != nil
        else { return }
        // Where no lock can be created, the next upkeep tries again.
        do {
            _ = try LockFile.ofMigration(file.path).withLock(until: Deadline(in: 0), deletes: true) {
                try writer.runBatch { try $0.retireMigration() }
            }
        } catch {}
    }

    private func reclaim(_ progress: (Int) -> Void = { _ in }) throws(StoreError) -> Int {
        var count = 0
        if try writer.read({ try $0.connection.number(.retiredIncarnation) }) == nil { return 0 }
        while true {
            let batch = try runBatch { try $0.reclaim(atMost: WriterState.batchLimit) }
            count += batch.deleted
            if batch.deleted > 0 { progress(count) }
            if batch.isDone { return count }
        }
    }

    /// Deletes the files that no row names: after opening, an hour later if some were too young, and then once a day.
    private func sweepFiles(_ now: Int64, isWhole: Bool) throws(StoreError) -> Int {
        guard let files = try writer.database.files, isWhole || now >= state.withLock({ $0.nextFileSweep }) else {
            return 0
        }
        var (count, hasYoung) = (0, false)
        for batch in try unnamedFiles(files, writtenBefore: now.addingSaturated(-3_600_000)).batches() {
            try runBatch { state in
                // The row of a younger one may be on its way.
                let swept = try files.sweep(batch, writtenBefore: now.addingSaturated(-3_600_000)) {
                    try state.connection.number(.namesFile, text: $0) != nil
                }
                count += swept.deleted
                hasYoung = hasYoung || swept.hasYoung
            }
        }
        let next = now.addingSaturated(hasYoung ? 3_600_000 : WriterState.day)
        state.withLock { $0.nextFileSweep = next }
        if hasYoung { ask(at: next, from: now) }
        return count
    }

    /// Returns the files that no row names, and throws if the table names one that its index does not have.
    ///
    /// The table is read only if there are some that are old enough to be deleted.
    private func unnamedFiles(_ files: ValueFiles, writtenBefore moment: Int64) throws(StoreError) -> [String] {
        try writer.retrying { () throws(StoreError) in
            try StoreError.translating {
                let names = try files.names()
                let unnamed = try writer.readAlone { connection in
                    Set(try names.filter { try connection.number(.namesFile, text: $0) == nil })
                }
                let old = try unnamed.filter { try files.isWritten($0, before: moment) }
                var next: Int64? = old.isEmpty ? nil : .min
                while let first = next {
                    next = try writer.readAlone { try $0.requireNone(of: old, from: first) }
                }
                return unnamed.sorted()
            }
        }
    }
}

extension Connection {
    /// Throws if one of 10,000 rows names a file that the index does not have, and returns the id behind these rows.
    fileprivate mutating func requireNone(of names: Set<String>, from first: Int64) throws(SQLiteError) -> Int64? {
        // A row may have been written since the index was asked.
        try holdSnapshot()
        var (last, named): (Int64?, [String]) = (nil, [])
        try with(.namedFiles) { row throws(SQLiteError) in
            try row.bind(first, at: 1)
            while try row.step() {
                if row.type(of: 1) != .null, names.contains(row.text(1)) { named.append(row.text(1)) }
                let id = row.int64(0)
                // A damaged page could lead back without end.
                guard id >= last ?? first else { throw SQLiteError.damagedOrder }
                last = id
            }
        }
        for name in named where try number(.namesFile, text: name) == nil { throw SQLiteError.damagedIndex }
        return last.flatMap { $0 == .max ? nil : $0 + 1 }
    }
}

extension Array {
    /// The elements in batches of the size of a transaction.
    fileprivate func batches() -> [ArraySlice<Element>] {
        stride(from: 0, to: count, by: WriterState.batchLimit).map {
            self[$0..<Swift.min(count, $0 + WriterState.batchLimit)]
        }
    }
}
