internal import LarderLocks
internal import LarderSQLite
internal import LarderStore

extension Cache {
    /// Returns why a read of a key gives what it gives.
    ///
    /// The call changes nothing, reports nothing, and counts neither as access nor in ``statistics``. It reads the value from
    /// the disk, so it is meant for finding faults.
    ///
    /// - Parameter key: The key.
    /// - Throws: A read error, see ``CacheError``.
    public func explain(_ key: Key) throws(CacheError) -> Presence {
        let stored = try stored(key)
        let name = "key \"\(stored.name)\" in the cache \"\(name)\""
        let history = history(of: key)
        func presence(_ kind: Presence.Kind, _ text: String, _ header: EntryHeader? = nil) -> Presence {
            Presence(kind: kind, metadata: header.map { EntryMetadata($0) }, history: history, description: text)
        }
        if rows.store.isClosed { return presence(.closed, "The manager was closed. Open the store again.") }
        if rows.store.isSuspended { return presence(.suspended, "The manager is suspended. Resume it first.") }
        let found = try throwing("explain the value", stored) { () throws(StoreError) in try rows.inspect(stored) }
        switch found {
        case .superseded(let version):
            let now = version.map { "is open under version \"\(CacheVersion($0))\"" } ?? "was removed"
            return presence(
                .superseded,
                "The handle under version \"\(self.version)\" finds nothing any more, since the cache \"\(self.name)\" \(now). Open"
                    + " the cache again.")
        case .absent(let version?):
            return presence(
                .otherVersion,
                "The value of \(name) was written under version \"\(CacheVersion(version))\", and was purged. Write or load it again."
            )
        case .absent(nil):
            return presence(
                .absent,
                "There is no value of \(name). "
                    + (history.first?.description ?? "It was never set, or was removed, evicted or deleted for its age.")
            )
        case .damaged(let header):
            return presence(
                .damaged,
                "The entry of \(name) is damaged, or its file is missing. Reads delete it. Write or load it again.",
                header)
        case .row(let row):
            return explain(row, key, name, presence)
        }
    }

    private func explain(
        _ row: StoredRow, _ key: Key, _ name: String, _ presence: (Presence.Kind, String, EntryHeader?) -> Presence
    ) -> Presence {
        var header = row.header
        let (now, hash) = (rows.store.time.now(), copies.seed.hash(key))
        let (copy, moment) = copies.state.withLock {
            ($0.copy(of: key, hash: hash, at: now), $0.accessedAt(key, hash: hash))
        }
        if let moment { header.note(accessAt: moment) }
        if header.end < now {
            let end = SystemClock.date(of: header.end)
            return presence(
                .expired,
                "The value of \(name) has expired at \(end). Write or load it again, or give it a longer age.", header)
        }
        do throws(CacheError) {
            _ = try codec.decode(row.payload, cache: self.name, key: row.header.key.name)
        } catch {
            return presence(.undecodable, error.message, header)
        }
        let isServed = copy.map { $0.isKnown && $0.end >= now } ?? false
        return isServed
            ? presence(.inMemory, "The value of \(name) is in memory and on disk.", header)
            : presence(.onDisk, "The value of \(name) is on disk. The next read puts it into memory.", header)
    }

    private func history(of key: Key) -> [Departure] {
        let hash = copies.seed.hash(key)
        let (found, limits) = (copies.state.withLock { $0.removals.departures(of: hash) }, core.current.disk)
        return found.map { Departure($0.cause, at: $0.moment, limits) }
    }

    /// Returns why a read of a key gives what it gives, without a wait on the thread of the task.
    public func explain(_ key: Key) async throws(CacheError) -> Presence {
        try await reading { () throws(CacheError) in try self.explain(key) }
    }
}
