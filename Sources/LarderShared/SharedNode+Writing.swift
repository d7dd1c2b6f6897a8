internal import Foundation
internal import Larder
internal import LarderLocks
internal import LarderStore

/// The way of a write or removal of this node: the tier, then the copy on this node.
///
/// In this order a kill in between leaves a message that the next process gets. What cannot be told the tier is noted before the
/// change here.
extension SharedNode {
    func set(_ copy: Cache<Key, Value>.Copy, _ entry: SharedEntry) async throws {
        let key = SharedForm.bytes(of: copy.key)
        // Without an age, or with too many bytes, it is nothing for the tier, and other nodes remove what they have.
        let isOver = entry.age.map { $0 < .milliseconds(1) } ?? false || isTooLarge(entry)
        try await operate(isOver ? .remove : .store, [.key(key)], [key]) {
            if isOver { return try await self.tier.remove([.key(key)], in: self.space) }
            _ = try await self.tier.store(entry, forKey: key, in: self.space, lease: nil)
            self.count { $0.stores += 1 }
            self.noteAccepted(.store)
        } locally: { operation in
            // The tier may have another value in the meantime.
            try await self.cache.put(copy, if: Unspoiled(node: self, operation: operation))
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
                let action = work == .store ? "store in the tier" : "remove from the tier"
                if tier.isAvailable, work == .store ? await tellsEarlierRemovals() : true {
                    isTold = await calling(action, keys?.count == 1 ? keys?[0] : nil, work, tell) != nil
                }
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

    /// Tells the tier the removals that wait, which would delete later what is stored now; returns false if that has failed.
    private func tellsEarlierRemovals() async -> Bool {
        let earlier = state.withLock { Set($0.pending.values) }
        while !state.withLock({ earlier.isDisjoint(with: $0.pending.values) }) {
            guard tier.isAvailable, await calling("remove from the tier", nil, .remove, send) != nil else {
                return false
            }
        }
        return true
    }

    private func begin(_ keys: [Data]?) throws(CacheError) -> Int {
        let operation = state.withLock { $0.isClosed ? nil : $0.begin(keys) }
        if let operation { return operation }
        try requireOpen()
        return 0
    }
}

/// An operation writes its copy unless a message has come for its key since it has begun.
private struct Unspoiled<Key: Codable & Hashable & Sendable, Value: Sendable>: ChangeCondition {
    let node: SharedNode<Key, Value>
    let operation: Int

    func holds() -> Bool { !node.state.withLock { $0.isSpoiled(operation) } }
}
