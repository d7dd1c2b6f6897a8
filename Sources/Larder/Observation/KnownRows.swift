internal import LarderLocks
internal import LarderSQLite
internal import LarderStore

/// What a stream of changes knows of the rows of its cache, to tell what other processes have changed.
///
/// At the beginning it knows what memory had. Its first read of the stream lists the rows, and each commit of another process makes
/// it list them again: rows with another revision were updated.
final class KnownRows<Key: Codable & Hashable & Sendable>: Sendable {
    /// The rows of a cache by their keys; nil if they are too many.
    typealias List = @Sendable () async throws(CacheError) -> [Key: RowVersion]?

    private struct State {
        var rows: [Key: RowVersion]
        /// A Boolean value that indicates whether these are all rows that there were.
        var isWhole = false
        var hasBegun = false
    }

    private let state: Mutex<State>
    private let store: Store
    /// What says whether another process has committed since the stream began.
    private let watch: CommitWatch
    private let epoch: UInt32
    private let list: List

    /// - Parameter copies: What memory has.
    init(_ copies: [Key: RowVersion], _ store: Store, list: @escaping List) {
        state = Mutex(State(rows: copies))
        (self.store, watch, self.list) = (store, store.watch, list)
        epoch = watch.foreignEpoch()
    }

    /// Lists the rows at the first read of the stream, and returns false if the cache cannot be read any more.
    func begin() async -> Bool {
        let isFirst = state.withLock { state in
            defer { state.hasBegun = true }
            return !state.hasBegun
        }
        if !isFirst { return true }
        do throws(CacheError) {
            let rows = try await list()
            let isQuiet = store.watch === watch && watch.foreignEpoch() == epoch
            if isQuiet, let rows, watch.tellsStores { replace(rows) }
            return true
        } catch {
            return ![.closed, .superseded].contains(error.code)
        }
    }

    /// Notes which rows the reader of the stream has got.
    func note(_ versions: [Key: RowVersion], of updated: [Key], _ removed: Set<Key>) {
        state.withLock { state in
            for key in updated { state.rows[key] = versions[key] }
            for key in removed { state.rows[key] = nil }
        }
    }

    /// Returns which rows were written and removed since the reader has got them; nil if that cannot be told.
    ///
    /// If `isWhole` is false, others may have changed too.
    func changes() async -> (updated: Set<Key>, removed: Set<Key>, isWhole: Bool)? {
        do throws(CacheError) {
            guard let rows = try await list() else {
                replace([:], isWhole: false)
                return nil
            }
            let (old, isWhole) = replace(rows)
            let updated = rows.filter { old[$0.key] != $0.value && (isWhole || old[$0.key] != nil) }
            return (Set(updated.keys), Set(old.keys.filter { rows[$0] == nil }), isWhole)
        } catch {
            return nil
        }
    }

    @discardableResult
    private func replace(_ rows: [Key: RowVersion], isWhole: Bool = true) -> (rows: [Key: RowVersion], isWhole: Bool) {
        state.withLock { state in
            defer { (state.rows, state.isWhole, state.hasBegun) = (rows, isWhole, true) }
            return (state.rows, state.isWhole)
        }
    }
}

extension Cache {
    /// Returns what a stream that begins now knows.
    func knownRows() -> KnownRows<Key> {
        KnownRows(copies.recentVersions(atMost: 1000), rows.store) { () async throws(CacheError) in
            try await self.reading { () throws(CacheError) in
                let found = try self.throwing("list the entries") { () throws(StoreError) in
                    try self.rows.requireCurrent()
                    return try self.rows.versions(atMost: PendingChanges<Key>.capacity)
                }
                guard let found else { return nil }
                var versions: [Key: RowVersion] = [:]
                for (key, version) in found {
                    versions[try self.core.keyCodec.key(key, cache: self.name)] = version
                }
                return versions
            }
        }
    }
}

extension TierState {
    /// Returns the rows of the copies that were used last.
    func recentVersions(atMost limit: Int) -> [Key: RowVersion] {
        var (found, index) = ([Key: RowVersion](), memory.table.mostRecent)
        while index != 0, found.count < limit {
            found[memory.table.key(at: index)] = memory.versions[Int(index)]
            index = memory.table.older(than: index)
        }
        return found
    }
}
