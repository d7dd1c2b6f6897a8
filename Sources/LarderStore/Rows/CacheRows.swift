package import Foundation
internal import LarderLocks
internal import LarderSQLite

/// The rows of one cache: what a handle on the cache asks of the store.
///
/// It names the cache by its declaration, so a clear does not concern it. Once no live cache has the declaration it is
/// *superseded*: reads find nothing, and writes throw.
@usableFromInline
package final class CacheRows: Sendable {
    @usableFromInline package let declaration: CacheDeclaration
    package let store: Store
    @usableFromInline package let inlineLimit: Int
    package let accessGrain: Int64
    /// The number of caches that the store had opened or removed when this one was opened, in the order of commits.
    package let openingCount: Int
    /// A Boolean value that indicates whether the opening has begun an incarnation.
    package let isNew: Bool
    /// The limits of the cache at the opening.
    package let limits: Limits
    private static let readOnlyCount = Atomic(0)
    /// A Boolean value that indicates whether it was reported that the handle is superseded.
    private let isReported = Atomic(false)
    private let wasCurrent = Atomic(false)
    /// A Boolean value that indicates whether the writer has known the totals since the opening.
    private let isCounted: Atomic<Bool>
    /// A Boolean value that indicates whether other entries of the cache are evicted if the disk is full.
    private let evictsOnFullDisk: Bool

    init(
        _ declaration: CacheDeclaration, inlineLimit: Int, accessGrain: Int64, evictsOnFullDisk: Bool, store: Store,
        opening: Opened
    ) {
        (self.declaration, self.inlineLimit, self.accessGrain) = (declaration, inlineLimit, accessGrain)
        (self.evictsOnFullDisk, self.store) = (evictsOnFullDisk, store)
        // No commit orders the openings of a store that is only read.
        openingCount = store.isReadOnly ? Self.readOnlyCount.add(1, ordering: .relaxed).newValue : opening.count
        (isNew, limits) = (opening.isNew, opening.limits)
        isCounted = Atomic(opening.isNew)
        store.tiers.countHandle(of: declaration.identity, 1)
    }

    deinit { store.tiers.countHandle(of: declaration.identity, -1) }

    /// Notes that a store that is only read has the cache.
    func noteCurrent() { if store.isReadOnly { wasCurrent.store(true, ordering: .relaxed) } }

    /// Reports that the handle is superseded, at the first call that finds it.
    package func noteSuperseded() {
        // A store that is only read creates no cache.
        if store.isReadOnly && !wasCurrent.load(ordering: .relaxed) { return }
        if isReported.load(ordering: .relaxed) || isReported.exchange(true, ordering: .relaxed) { return }
        store.report(.superseded(cache: declaration.name, version: declaration.version))
    }

    /// The moment by the store's clock.
    @usableFromInline
    package func now() -> Int64 { store.time.now() }

    /// Makes a change, and returns when it is committed.
    @discardableResult
    package func run(_ change: Change) throws(StoreError) -> Outcome {
        let change = try writingFiles(of: change)
        let known = if case .clear = change.work { try totalsBeforeClear() } else { Totals?.none }
        do throws(StoreError) {
            var outcome = try store.writer.run(.change(change, declaration, evicts: evictsOnFullDisk))
            outcome.cleared = outcome.cleared ?? known
            if outcome.rows.isEmpty { discard(change.files) }
            return try completingTaken(outcome)
        } catch {
            if Self.isUnwritten(error) { discard(change.files) }
            throw error
        }
    }

    /// Makes a change for a task.
    ///
    /// A task that is cancelled while the change waits throws `CancellationError`.
    @discardableResult
    package func run(_ change: Change) async throws -> Outcome {
        guard needsFiles(change), let files = store.files else {
            var known: Totals?
            if case .clear = change.work, !isCounted.load(ordering: .relaxed) {
                known = try await Writer.offloaded { try self.totalsBeforeClear() }
            }
            var outcome = try await store.writer.run(
                .change(change, declaration, evicts: evictsOnFullDisk))
            outcome.cleared = outcome.cleared ?? known
            guard outcome.taken?.header.file != nil, let files = outcome.files else { return outcome }
            return try await files.onQueue { [outcome] in try self.completingTaken(outcome) }
        }
        let written = try await files.onQueue { try self.writingFiles(of: change) }
        do {
            let outcome = try await store.writer.run(
                .change(written, declaration, evicts: evictsOnFullDisk))
            if outcome.rows.isEmpty { files.discardLater(written.files) }
            return outcome
        } catch {
            if Self.isUnwritten(error) { try await files.onQueue { files.discard(written.files) } }
            throw error
        }
    }

    /// Returns the totals of the rows that a clear removes, unless the writer has known them once: it counts no rows.
    private func totalsBeforeClear() throws(StoreError) -> Totals? {
        isCounted.load(ordering: .relaxed) || store.writer.isOwned ? nil : try totals()
    }

    /// Notes that the writer has known the totals, or knows them from now on.
    func noteCounted() { isCounted.store(true, ordering: .relaxed) }

    /// Reads the file of a row that was removed, and discards it.
    private func completingTaken(_ outcome: Outcome) throws(StoreError) -> Outcome {
        guard let row = outcome.taken, let file = row.header.file, let files = outcome.files else { return outcome }
        var outcome = outcome
        defer { files.discard([file]) }
        outcome.taken = try files.complete(row)
        if outcome.taken == nil { store.report(.damagedEntry(cache: declaration.name, key: row.header.key)) }
        return outcome
    }

    /// Returns the header of an entry that is to be written in place of an old one.
    ///
    /// - Parameter rule: The rule of the cache.
    package func header(of entry: EntryWrite, _ rule: AgeRule, _ old: EntryHeader?) -> EntryHeader {
        var meta = entry.meta
        if entry.keepsPin { meta.isPinned = old?.meta.isPinned ?? false }
        return EntryHeader(
            key: entry.key, id: 0, revision: 0, writtenAt: entry.writtenAt, expiresAt: entry.expiresAt,
            payloadSize: Int64(entry.payloadSize),
            file: isFile(entry) ? "" : nil, meta: meta, rule: rule)
    }

    /// Notes a read of a row that memory alone does not know of.
    @usableFromInline
    package func noteAccess(to row: RowSummary, at moment: Int64) {
        let grain = min(accessGrain, (row.slidingAge ?? .max) / 16)
        let isDue = store.accesses.note(Access(to: row, moment: moment, grain: grain))
        if isDue { store.upkeep.ask(at: moment, from: moment) }
        if row.slidingAge != nil { store.upkeep.ask(at: moment.addingSaturated(grain), from: moment) }
    }

    /// Returns whether the payload of an entry becomes a file.
    private func isFile(_ entry: EntryWrite) -> Bool { entry.payloadSize > inlineLimit && store.path != nil }

    private func needsFile(_ entry: EntryWrite) -> Bool { entry.file == nil && isFile(entry) }

    private func needsFiles(_ change: Change) -> Bool {
        if case .put(let entries) = change.work { entries.contains(where: needsFile) } else { false }
    }

    /// Returns a change whose large payloads are in files.
    func writingFiles(of change: Change) throws(StoreError) -> Change {
        if store.isReadOnly { throw .readOnly }
        guard case .put(var entries) = change.work, try writeFiles(of: &entries) else { return change }
        var change = change
        change.work = .put(entries)
        return change
    }

    /// Puts the large payloads of entries into files, and returns whether there were any.
    @discardableResult
    func writeFiles(of entries: inout [EntryWrite]) throws(StoreError) -> Bool {
        guard entries.contains(where: needsFile), let files = store.files else { return false }
        try store.writer.requireResumed()
        var written: [String] = []
        for index in entries.indices where needsFile(entries[index]) {
            do throws(StoreError) {
                try moveToFile(&entries[index], files)
            } catch {
                files.discard(written)
                throw error
            }
            if let name = entries[index].file { written.append(name) }
        }
        return true
    }

    /// Writes a payload to a file.
    private func moveToFile(_ entry: inout EntryWrite, _ files: ValueFiles) throws(StoreError) {
        let size = Int64(entry.payloadSize)
        try withRoom(for: size) { () throws(StoreError) in try entry.moveToFile(in: files) }
    }

    /// Copies a file of the program to a value file, or returns its bytes if they belong into the row or are to be encoded.
    package func copy(
        _ path: String, for key: StoredKey, label: String?, isPlain: Bool
    ) throws(StoreError) -> (file: CopiedFile?, bytes: Data) {
        if store.isReadOnly { throw .readOnly }
        try store.writer.requireResumed()
        let source = try ValueFiles.source(path)
        guard isPlain, source.size > inlineLimit, let files = store.files else {
            return (nil, try StoreError.translating { try source.read() })
        }
        let name = FileName.new(of: key, label)
        let checksum = try withRoom(for: source.size) { () throws(StoreError) in try files.copy(source, as: name) }
        return (CopiedFile(name: name, size: source.size, checksum: checksum), Data())
    }

    /// Runs `body`, on a full disk again after other entries were evicted.
    private func withRoom<R>(for size: Int64, _ body: () throws(StoreError) -> R) throws(StoreError) -> R {
        do throws(StoreError) { return try body() } catch {
            guard error.code == .storageFull, evictsOnFullDisk, !store.writer.isOwned else { throw error }
            try store.writer.read { [declaration] in try $0.makeRoom(forFileOf: size, from: declaration) }
            return try body()
        }
    }

    private func discard(_ written: [String]) { if !written.isEmpty { store.files?.discard(written) } }

    /// Returns whether a failed operation has surely written no row, so that its files can be discarded.
    ///
    /// After a COMMIT that failed a row may name a file, so the sweep decides, unless SQLite has found no room to write.
    private static func isUnwritten(_ error: any Error) -> Bool {
        guard let error = error as? StoreError else { return error is CancellationError }
        return [.superseded, .closed, .suspended, .busy, .reentrant, .tooLarge].contains(error.code)
            || error.isSurelyUnwritten
    }
}

/// A value file that no row names yet.
package struct CopiedFile: Sendable {
    let name: String
    package let size: Int64
    let checksum: Int64
}

/// What holds for all handles of a cache, and the memory in front of it.
extension CacheRows {
    /// Sets the limits of the cache, for all its handles, and holds them.
    package func setLimits(_ limits: Limits) throws(StoreError) {
        let now = store.time.now()
        try store.writer.runBatch { state in
            state.now = now
            try state.set(limits, 0, of: declaration)
        }
    }

    /// Leaves expired entries for a time from soon on, for all handles: the longest time that any handle asked for.
    ///
    /// - Parameter whenKept: Called once that is committed, or the cache is superseded.
    /// - Returns: False if the store is suspended or closed.
    @discardableResult
    package func keepExpired(_ milliseconds: Int64, whenKept: @escaping @Sendable () -> Void = {}) -> Bool {
        store.writer.enqueue { [declaration] state in
            if state.incarnation(of: declaration) != nil { try state.set(nil, milliseconds, of: declaration) }
        } whenDone: {
            whenKept()
        }
    }

    /// The notes of the cache by their numbers.
    ///
    /// A clear leaves them; they go with the cache and with its version.
    package func notes() throws(StoreError) -> [Int64: [UInt8]] {
        let found = try read { connection, cache throws(SQLiteError) in
            try connection.list(.notes, text: cache.cache.name) { (number: $0.int64(0), content: $0.bytes(1)) }
        }
        return (found ?? []).reduce(into: [:]) { $0[$1.number] = $1.content }
    }

    /// A Boolean value that indicates whether this thread runs the body of a transaction.
    package var isInBody: Bool { store.writer.isOwned }

    /// Throws unless the cache can be written to.
    ///
    /// - Parameter isCurrent: True if a read has just found that a live cache has the declaration.
    package func requireWritable(isCurrent: Bool = false) throws(StoreError) {
        if store.isReadOnly { throw .readOnly }
        if store.isClosed { throw .closed }
        if store.writer.isOwned { throw .reentrant }
        if !isCurrent { try requireCurrent() }
    }

    /// Throws if no live cache has the declaration.
    package func requireCurrent() throws(StoreError) {
        if try isSuperseded() { throw .superseded }
    }

    /// Connects the memory in front of the cache.
    ///
    /// It is kept until it is detached, so it must not keep the rows.
    package func attach(_ memory: any TierDelegate) {
        store.tiers.attach(memory, to: declaration.identity)
        // The file may have been opened again in the meantime.
        memory.storeWasOpened(store.watch, isSameFile: true)
    }

    package func detach(_ memory: any TierDelegate) { store.tiers.detach(memory, from: declaration.identity) }
}

/// Counting rows: the writer knows their totals, and the ages tell which may be served.
extension CacheRows {
    /// Returns the number of rows and their bytes, expired ones included.
    ///
    /// The writer knows them. While it works they are counted.
    package func totals() throws(StoreError) -> Totals { try counted().totals }

    /// Returns the number of entries that have not expired.
    ///
    /// Where some can have, their ages are read.
    package func count(at now: Int64) throws(StoreError) -> Int64 {
        let known = try counted()
        if known.knowsEnds && now <= known.firstEnd { return known.totals.count }
        return try read(.many) { connection, cache throws(SQLiteError) in
            try connection.count(at: now, in: cache, store.accesses)
        } ?? 0
    }

    /// Returns whether there is an entry that has not expired: the first row tells, unless it has.
    package func hasEntry(at now: Int64) throws(StoreError) -> Bool {
        var (page, limit) = (try headers(limit: 1), Self.pageLimit)
        while !page.rows.contains(where: { $0.end >= now }) {
            guard let next = page.next else { return false }
            page = try headers(after: next, limit: limit)
            limit = min(limit * 2, 4096)
        }
        return true
    }

    /// Returns whether an entry can have expired, as far as is known without counting.
    package func mayHaveExpired(at now: Int64) throws(StoreError) -> Bool {
        guard let known = try known(), known.knowsEnds else { return true }
        return now > known.firstEnd
    }

    private func counted() throws(StoreError) -> RowCount {
        if let known = try known() { return known }
        let mark = store.writer.database.counter?.mark()
        let counted = try read(.many) { connection, cache throws(SQLiteError) in
            (id: cache.id, count: try connection.count(of: cache, store.accesses))
        }
        guard let counted else { return RowCount() }
        // If no store has committed in the meantime, the next call need not count.
        _ = try store.writer.tryRead { state in
            try state.lookUpIncarnations()
            if let mark, mark == state.database.counter?.mark(), state.incarnation(of: declaration)?.id == counted.id {
                state.counts.set(counted.count, of: counted.id)
                noteCounted()
            }
        }
        return counted.count
    }

    /// Returns the count that the writer has; nil if it has none, or while it works.
    private func known() throws(StoreError) -> RowCount? {
        let found = try store.writer.retrying { () throws(StoreError) -> RowCount?? in
            try store.writer.requireResumed()
            try store.readers?.compare(store.writer.database, at: store.time.now())
            return try store.writer.tryRead { state in
                try state.lookUpIncarnations()
                guard let cache = state.incarnation(of: declaration) else { return nil }
                guard let count = state.counts[cache.id], count.isExact else { return RowCount?.none }
                return count
            }
        }
        if let known = found ?? nil {
            noteCounted()
            return known
        }
        return nil
    }
}

/// Removing many rows.
extension CacheRows {
    /// Removes the entries that have a tag, and returns their number.
    @discardableResult
    package func removeAll(tagged tag: String) throws(StoreError) -> Int {
        try store.writer.removeAll(tagged: tag, in: declaration)
    }

    /// Removes the entries whose keys are texts that begin so, and returns their number.
    package func removeAll(prefix: String) throws(StoreError) -> Int {
        try store.writer.removeAll(prefix: prefix, in: declaration)
    }

    /// Removes expired and least recently used entries until the cache is within limits, and returns their number.
    @discardableResult
    package func trim(to limits: Limits) throws(StoreError) -> Int {
        let now = store.time.now()
        return try store.writer.trim(declaration, to: limits, at: now)
    }

    /// Removes all entries, and returns when none of their bytes is left in the files of the store.
    ///
    /// - Parameters:
    ///   - progress: Called with the number of deleted rows after each batch, outside all locks.
    ///   - clear: The change that removes them.
    package func erase(progress: (Int) -> Void = { _ in }, _ clear: Change = .clear) throws(StoreError) {
        if store.isReadOnly { throw .readOnly }
        try store.upkeep.erase(progress) { () throws(StoreError) in try run(clear) }
    }

    /// Removes rows that were not written since, and returns their number.
    package func remove(_ rows: [EntryHeader], _ cause: RemovedRow.Cause) throws(StoreError) -> Int {
        if rows.isEmpty { return 0 }
        return try store.writer.runBatch { state in
            guard let cache = state.incarnation(of: declaration) else { throw StoreError.superseded }
            var count = 0
            for row in rows where try state.remove(row, ifUnchangedIn: cache, cause) { count += 1 }
            return count
        }
    }
}
