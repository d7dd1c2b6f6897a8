internal import LarderLocks
internal import LarderSQLite
internal import LarderStore

/// The rows of which the reader of a stream of changes knows, to tell what other processes have changed.
///
/// The stream lists the rows when its first batch is requested, and again after a commit of another process: rows with another
/// revision were updated. Where no list is known, such a commit is a reset.
final class KnownRows<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    private struct State {
        /// Nil if they are not known, or too many.
        var rows: [Key: RowVersion]?
        /// What tells of commits of other processes, and the last one before the rows are listed.
        var watch: CommitWatch
        var epoch: UInt32
        var isListed = false
    }

    private let state: Mutex<State>
    private let cache: Cache<Key, Value>

    init(_ cache: Cache<Key, Value>) {
        self.cache = cache
        let watch = cache.rows.store.watch
        state = Mutex(State(watch: watch, epoch: watch.foreignEpoch()))
    }

    /// Lists the rows before the first batch, and before the first after a reset; returns false if the cache cannot be read any more.
    func begin() async -> Bool {
        let (isListed, watch, epoch) = state.withLock { state in
            defer { state.isListed = true }
            return (state.isListed, state.watch, state.epoch)
        }
        if isListed { return true }
        do throws(CacheError) {
            let rows = try await list()
            // A commit in between is noticed by the next look, and a reset.
            let isQuiet = cache.rows.store.watch === watch && watch.tellsStores && watch.foreignEpoch() == epoch
            if isQuiet { state.withLock { if $0.watch === watch && $0.epoch == epoch { $0.rows = rows } } }
            return true
        } catch {
            return ![.closed, .superseded].contains(error.code)
        }
    }

    /// Notes which rows the reader of the stream has got.
    func note(_ versions: [Key: RowVersion], of keys: [Key]) {
        state.withLock { state in for key in keys { state.rows?[key] = versions[key] } }
    }

    /// Returns the keys whose rows are others than those that the reader has got; nil if they are not known.
    func changedKeys() async -> Set<Key>? {
        do throws(CacheError) {
            guard let rows = try await list() else { return nil }
            let old = state.withLock { state in
                defer { if state.rows != nil { state.rows = rows } }
                return state.rows
            }
            guard let old else { return nil }
            let changed = rows.filter { old[$0.key] != $0.value }.map(\.key) + old.keys.filter { rows[$0] == nil }
            return Set(changed)
        } catch {
            return nil
        }
    }

    /// Lists the rows again before the next batch, since the reader gets a reset.
    func reset() {
        let watch = cache.rows.store.watch
        state.withLock { $0 = State(watch: watch, epoch: watch.foreignEpoch()) }
    }

    /// Returns the versions of all rows; nil if they are too many, or no other process can change them.
    private func list() async throws(CacheError) -> [Key: RowVersion]? {
        try await cache.reading { [cache] () throws(CacheError) in
            let limit = cache.rows.store.path == nil ? 0 : PendingChanges<Key>.capacity
            let found = try cache.throwing("list the entries") { () throws(StoreError) in
                try cache.rows.versions(atMost: limit)
            }
            guard let found, limit > 0 else { return nil }
            var versions: [Key: RowVersion] = [:]
            for (key, version) in found { versions[try cache.core.keyCodec.key(key, cache: cache.name)] = version }
            return versions
        }
    }
}
