internal import Dispatch
package import Foundation
internal import LarderLocks
internal import LarderSQLite

/// How the rows of a cache get from one version to another.
package enum Migration: Sendable {
    /// They stay as they are.
    case keep
    /// Each gets another payload, and its file perhaps a label; with nil the row is dropped. A row may be converted again.
    case convert(@Sendable (StoredRow) -> ConvertedRow?)
}

/// What a row becomes in another version.
package struct ConvertedRow: Sendable {
    package let payload: Data
    /// The readable part of its file's name.
    package let label: String?
    package var meta: RowMeta
    /// The end of the entry alone.
    package var end: Int64?

    /// A row that keeps the attributes of another.
    package init(_ payload: Data, _ label: String?, of header: EntryHeader) {
        (self.payload, self.label, meta, end) = (payload, label, header.meta, header.expiresAt)
    }
}

/// The result of a migration.
package struct MigrationResult: Sendable {
    package let cache: String
    package let oldVersion: String
    package let version: String
    /// The number of rows with another payload; nil if all stayed as they are.
    package internal(set) var converted: Int?
    package internal(set) var dropped = 0
    /// The first of the keys that were dropped.
    package internal(set) var firstDropped: [StoredKey] = []

    mutating func noteDropped(_ key: StoredKey) {
        dropped += 1
        if firstDropped.count < 20, !firstDropped.contains(key) { firstDropped.append(key) }
    }
}

extension Store {
    /// Returns what a cache is stored under; nil if there is none of its name, or the store is in memory or only read.
    package func storedDeclaration(of name: String) throws(StoreError) -> CacheDeclaration? {
        if isReadOnly || path == nil { return nil }
        return try writer.retrying { () throws(StoreError) in
            try writer.read { state in
                try state.lookUpIncarnations()
                return state.incarnations[ExactName(name)]?.cache
            }
        }
    }

    /// Carries the rows of a cache over to another declaration, under which it is live then.
    ///
    /// Other writers go on until the switch, except for those that migrate.
    ///
    /// - Returns: False if the cache has another declaration than the old one by now.
    package func migrate(
        _ old: CacheDeclaration, to declaration: CacheDeclaration, inlineLimit: Int, _ migration: Migration,
        _ progress: @escaping (_ completed: Int, _ total: Int) -> Void
    ) throws(StoreError) -> Bool {
        guard let path else { return false }
        if writer.isOwned { throw .reentrant }
        // A suspension waits, but for closures of the program, and ends the migration at its next transaction.
        writer.ownConnections.enter()
        defer { writer.ownConnections.leave() }
        try writer.requireResumed()
        let deadline = Deadline(in: writer.busyTimeout)
        let isDone = try StoreError.translating {
            try LockFile.ofMigration(path).withLock(until: deadline, deletes: true) { lock in
                writer.migrationLock.withLock { $0 = lock }
                defer { writer.migrationLock.withLock { if $0 === lock { $0 = nil } } }
                switch migration {
                case .keep: return try keep(old, as: declaration)
                case .convert(let convert):
                    return try MigrationRun(self, old, declaration, inlineLimit, convert, progress, lock).run()
                }
            }
        }
        guard let isDone else {
            throw StoreError(.busy, "A cache of the store is being migrated. Try again when that is done.")
        }
        return isDone
    }

    private func keep(_ old: CacheDeclaration, as declaration: CacheDeclaration) throws -> Bool {
        let now = time.now()
        return try writer.runBatch { state in
            guard let live = state.incarnation(of: old) else { return false }
            try live.requireKeys(of: declaration)
            state.now = now
            state.open.switchesIncarnation = true
            try state.change(old) { $0.cache = declaration }
            // Other ends hold now.
            state.counts.forgetEnds(of: live.id)
            let result = MigrationResult(cache: old.name, oldVersion: old.version, version: declaration.version)
            state.open.notices.append(.event(.migrated(result)))
            return true
        }
    }
}

/// A migration that converts rows.
///
/// Passes over the old rows take in what was not taken in as it is now. The first one takes in all. Others follow only if
/// another commit came between. The last one is inside the transaction that switches.
private final class MigrationRun {
    private let store: Store
    private let old: CacheRows
    private let new: CacheRows
    private let convert: @Sendable (StoredRow) -> ConvertedRow?
    private let progress: (Int, Int) -> Void
    private let lock: HeldLock?
    private var total = 0
    private var completed = 0
    private var result: MigrationResult
    /// The number of the migration's last commit; nil if commits are not counted.
    private var commits: UInt32?
    /// The file of that commit.
    private var database: Database?
    /// A Boolean value that indicates whether others have committed since the last pass began.
    private var isDisturbed = false
    /// A Boolean value that indicates whether others have committed since the first pass began.
    private var wasDisturbed = false
    /// A Boolean value that indicates whether the file was replaced by one without what was taken in.
    private var isLost = false

    /// The incarnation of the rows that were taken in, and that of the rows that were dropped.
    private struct Hidden {
        let rows: Incarnation
        let dropped: Incarnation
    }

    init(
        _ store: Store, _ old: CacheDeclaration, _ declaration: CacheDeclaration, _ inlineLimit: Int,
        _ convert: @escaping @Sendable (StoredRow) -> ConvertedRow?,
        _ progress: @escaping (Int, Int) -> Void, _ lock: HeldLock?
    ) {
        func rows(_ declaration: CacheDeclaration) -> CacheRows {
            CacheRows(
                declaration, inlineLimit: inlineLimit, accessGrain: 0, evictsOnFullDisk: false, store: store,
                opening: Opened())
        }
        (self.store, self.convert, self.progress, self.lock) = (store, convert, progress, lock)
        (self.old, new) = (rows(old), rows(declaration))
        result = MigrationResult(
            cache: old.name, oldVersion: old.version, version: declaration.version, converted: 0)
    }

    /// Returns false if the old rows, or those that were taken in, are no longer there.
    func run() throws -> Bool {
        guard let hidden = try begin() else { return false }
        do {
            wasDisturbed = false
            for index in 0..<Self.passLimit {
                isDisturbed = false
                let count = try pass(hidden, index == 0 ? .page : .many) { body in
                    try write(into: hidden, body)
                    try outside { progress(completed, total) }
                }
                if !isDisturbed || count < Self.restLimit { break }
            }
            if try end(hidden) {
                do { try outside { progress(total, total) } } catch {}
                return true
            }
        } catch {
            abandon()
            if isLost { return false }
            throw error
        }
        abandon()
        return false
    }

    /// The number of passes outside the transaction that switches, however many rows are written in the meantime.
    private static let passLimit = 10
    /// The number of rows from which on there is another such pass.
    private static let restLimit = 500

    private func begin() throws -> Hidden? {
        let now = store.time.now()
        try store.writer.noteMemory()
        try store.writer.countRows { [old] state, cache in
            cache.cache.identity == old.declaration.identity && state.counts[cache.id]?.isExact != true
        }
        return try write { state in
            state.now = now
            try state.retireMigration()
            guard let live = state.incarnation(of: old.declaration) else { return nil }
            try live.requireKeys(of: new.declaration)
            total = Int(state.counts[live.id]?.totals.count ?? 0)
            return Hidden(
                rows: try state.declareHidden(new.declaration), dropped: try state.declareHidden(new.declaration))
        }
    }

    /// Runs `body` in a transaction, and notes whether others have committed before it.
    private func write<R>(into hidden: Hidden? = nil, _ body: (WriterState) throws -> R) throws -> R {
        try store.writer.runBatch { state in
            let changes = state.database.counter?.mark().changes
            if changes == nil || changes != commits || database !== state.database {
                (isDisturbed, wasDisturbed) = (true, true)
            }
            (commits, database) = (changes.map { $0 &+ 1 }, state.database)
            // A salvage copies live rows alone.
            if let hidden, try state.connection.number(.isMigrating, hidden.rows.id) == nil {
                isLost = true
                throw StoreError.superseded
            }
            return try body(state)
        }
    }

    /// Takes in the rows that were not taken in as they are now, and returns their number.
    ///
    /// - Parameter write: Runs a closure in a transaction.
    private func pass(
        _ hidden: Hidden, _ size: ReadSize, _ write: ((WriterState) throws -> Void) throws -> Void
    ) throws -> Int {
        var (last, count) = (PagePosition?.none, 0)
        repeat {
            let page = try old.unmigratedRows(after: last, size)
            last = page.next
            if page.rows.isEmpty { continue }
            let now = store.time.now()
            var entries = try page.rows.compactMap { try $0.header.end < now ? nil : converted($0) }
            try new.writeFiles(of: &entries)
            (count, completed) = (count + page.rows.count, min(total, completed + page.rows.count))
            var hasBegun = false
            // A transaction that fails discards them itself.
            defer { if !hasBegun { store.files?.discard(entries.compactMap(\.file)) } }
            try write { [entries] state in
                hasBegun = true
                try writeRows(page.rows, entries, hidden, at: now, state)
            }
        } while last != nil
        return count
    }

    /// Runs a closure of the program, for which no suspension waits; a suspension in the meantime ends the migration.
    private func outside<R>(_ body: () -> R) throws(StoreError) -> R {
        // Inside the transaction that switches, it waits for the writer.
        store.writer.ownConnections.leave()
        defer { store.writer.ownConnections.enter() }
        let result = body()
        if lock?.isReleased == true { throw .suspended }
        return result
    }

    private func converted(_ row: StoredRow) throws(StoreError) -> EntryWrite? {
        guard let converted = try outside({ convert(row) }) else { return nil }
        return EntryWrite(
            key: row.header.key, payload: converted.payload, writtenAt: row.header.writtenAt, expiresAt: converted.end,
            meta: converted.meta, label: converted.label)
    }

    /// Takes in what has become of rows.
    ///
    /// - Parameter entries: Those of the rows that were not dropped, in their order.
    private func writeRows(
        _ rows: [StoredRow], _ entries: [EntryWrite], _ hidden: Hidden, at now: Int64, _ state: WriterState
    ) throws {
        state.now = now
        state.open.writtenFiles += entries.compactMap(\.file)
        var rest = entries[...]
        for row in rows {
            let header = row.header
            if let entry = rest.first, entry.key == header.key {
                rest.removeFirst()
                if try state.write(entry, header.revision, accessedAt: header.accessedAt, into: hidden.rows) {
                    result.converted? += 1
                }
                continue
            }
            if try state.drop(header.key, from: hidden.rows) { result.converted? -= 1 }
            let grave = EntryWrite(key: header.key, payload: Data(), writtenAt: now)
            let isNew = try state.write(grave, header.revision, accessedAt: now, into: hidden.dropped)
            if isNew && header.end >= now { result.noteDropped(header.key) }
        }
    }

    /// Switches, and returns false if the old rows are no longer live.
    private func end(_ hidden: Hidden) throws -> Bool {
        let now = store.time.now()
        return try write(into: hidden) { state in
            guard let live = state.incarnation(of: old.declaration) else { return false }
            state.now = now
            if isDisturbed { _ = try pass(hidden, .many) { body in try body(state) } }
            if wasDisturbed { result.converted? -= try state.dropVanished(from: hidden.rows, live) }
            try state.replace(live, by: hidden.rows)
            try state.retire(hidden: hidden.dropped)
            state.open.notices.append(.event(.migrated(result)))
            return true
        }
    }

    /// Retires what was taken in; if that fails, the upkeep does.
    ///
    /// After a suspension another migration may run, which retires it.
    private func abandon() {
        if lock?.isReleased == true { return }
        do { try store.writer.runBatch { try $0.retireMigration() } } catch {}
    }
}
