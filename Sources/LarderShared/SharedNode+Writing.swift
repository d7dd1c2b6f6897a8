internal import Foundation
internal import LarderLocks
internal import LarderStore

/// The way of a write or removal of this node: the tier, then the copy on this node.
///
/// In this order a kill in between leaves a message that the next process gets. What cannot be told the tier is noted before the
/// change here.
extension SharedNode {
    func set(_ write: Cache<Key, Value>.Write, _ entry: SharedEntry) async throws {
        let key = SharedForm.bytes(of: write.entry.key)
        // Without an age, or with too many bytes, it is nothing for the tier, and other nodes remove what they have.
        let isOver = entry.age.map { $0 < .milliseconds(1) } ?? false || isTooLarge(entry)
        try await operate(isOver ? .remove : .store, [.key(key)], [key]) {
            if isOver { return try await self.tier.remove([.key(key)], in: self.space) }
            _ = try await self.tier.store(entry, forKey: key, in: self.space, lease: nil)
            self.count { $0.stores += 1 }
            self.noteAccepted(.store)
        } locally: { operation in
            try await self.put(write, operation)
        }
    }

    /// - Parameter keys: The keys that are removed; nil for a tag or all.
    /// - Returns: Whether the tier was told.
    func remove(_ removals: [SharedRemoval], _ keys: [Data]?) async throws -> SharedOutcome {
        try await operate(.remove, removals, keys) {
            try await self.tier.remove(removals, in: self.space)
            self.noteAccepted(.remove)
        } locally: { _ in
            try await self.apply(removals)
        }
    }

    /// - Returns: Whether the tier was told.
    @discardableResult
    private func operate(
        _ work: SharedWork, _ removals: [SharedRemoval], _ keys: [Data]?,
        inTier tell: @escaping @Sendable () async throws -> Void,
        locally: @escaping @Sendable (_ operation: Int) async throws -> Void
    ) async throws -> SharedOutcome {
        let operation = try begin(keys)
        // In a task that is not cancelled: what the tier has done is done here too.
        return try await Task {
            var isTold = false
            do {
                isTold = tier.isAvailable ? await calling(work, tell) != nil : false
                if !isTold { try await pend(removals) }
                try await locally(operation)
            } catch {
                owe(removals, operation)
                throw error
            }
            state.withLock { $0.end(operation) }
            return isTold ? .everywhere : .pending
        }.value
    }

    private func begin(_ keys: [Data]?) throws(CacheError) -> Int {
        let operation = state.withLock { $0.isClosed ? nil : $0.begin(keys) }
        if let operation { return operation }
        try requireOpen()
        return 0
    }

    /// Writes a copy; removes it instead if the tier may have another value.
    private func put(_ write: Cache<Key, Value>.Write, _ operation: Int) async throws {
        let (copies, copy) = (cache.copies, write.copy)
        let request: (RowOperation, CacheRows.Apply) = (
            .put(
                [write.entry],
                if: {
                    // A load that is stored in the same transaction comes behind.
                    copies.loads.overtake([write.entry.key])
                    return !self.state.withLock { $0.isSpoiled(operation) }
                }),
            { copies.wrote(CollectionOfOne(copy), $0, &$1) }
        )
        let isWritten = try await !cache.run(request, "set the value", write.entry.key).rows.isEmpty
        if !isWritten { try await cache.remove(copy.key) }
    }
}

extension SharedNode {
    /// Returns the entries of keys from this node, the tier, or a load.
    func load(
        _ keys: [Item], needsValue: Bool, acceptsAbsence: Bool,
        _ generate: (@Sendable ([Item], Cache<Key, Value>.LoadedRows) async throws -> Results)?
    ) async throws -> [StoredKey: CacheEntry<Key, Value>] {
        try await cache.loads.load(keys, needsValue: needsValue, isLook: generate == nil) { ticket in
            await self.cache.lead(ticket, isDue: { _ in self.isSilent.load(ordering: .relaxed) }) { look in
                guard let generate else {
                    return try await self.values(look.missing, acceptsAbsence: acceptsAbsence, nil)
                }
                return try await self.values(look.missing, acceptsAbsence: acceptsAbsence) { items in
                    let made = try await generate(items, look)
                    return items.reduce(into: Results()) { results, item in
                        results[item.key] = made[item.key]?.resolved(look.old[item.stored]?.entry)
                    }
                }
            }
        }
    }

    func entry(
        _ key: Key, acceptsAbsence: Bool,
        _ generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) async throws -> CacheEntry<Key, Value>? {
        try requireOpen()
        let stored = try cache.stored(key)
        if acceptsAbsence, !isSilent.load(ordering: .relaxed), cache.isAbsent(stored) {
            return try await cache.entry(forKey: key)
        }
        return try await load([(key, stored)], needsValue: !acceptsAbsence, acceptsAbsence: acceptsAbsence) {
            [key: try await generate(key, $1.old[stored]?.entry)]
        }[stored]
    }
}

extension Generated where Value: Sendable {
    /// The old value as a new one, if it was not modified: other nodes may not have it.
    func resolved<Key>(_ old: CacheEntry<Key, Value>?) -> Generated {
        guard case .notModified = outcome, let old else { return self }
        let (written, end) = (old.metadata.writtenAt, old.metadata.expiresAt)
        return .value(
            old.value, maxAge: end.map { .timeInterval($0.timeIntervalSince(written)) }, cost: old.metadata.cost,
            extendedData: old.extendedData, tags: old.metadata.tags)
    }
}
