internal import Foundation
internal import LarderLocks

/// What a node knows of its tier, and what it has begun.
struct SharedState {
    /// A write or removal of this node that has begun and is not done on the tier and here.
    private struct Operation {
        /// Nil for a removal of a tag or of all.
        let keys: [Data]?
        /// A Boolean value that indicates whether the order in the tier and on this node can differ.
        var isSpoiled = false
        /// The position at its beginning.
        let position: String?
        /// The removals that have failed here, and are tried again.
        var debt: [SharedRemoval]?
    }

    /// The position behind the messages that were applied.
    private(set) var position: String?
    private var savedPosition: String?
    private var savedAt: SharedClock.Instant?
    /// The moment of the last word from the tier.
    var heardAt = SharedClock.now
    /// A Boolean value that indicates whether the node knows what others have removed.
    var isCurrent = false
    /// A Boolean value that indicates whether the tier has had its time to answer for the first time.
    var hasBegun = false
    /// A Boolean value that indicates whether it was reported that the tier cannot be reached.
    var isLossReported = false
    /// Why the tier could not be reached the last time; nil if it is there.
    var loss: String?
    /// What the tier has said when it refused a work, until it accepts one of that kind.
    var refusals: [SharedWork: String] = [:]
    var isClosed = false

    private var operations: [Int: Operation] = [:]
    private var operationsByKey: [Data: Set<Int>] = [:]
    private var wideOperations: Set<Int> = []
    private var lastOperation = 0

    /// The removals that the tier was not told, by number.
    private(set) var pending: [SharedRemoval: Int64] = [:]
    /// The numbers of those that the tier was told, and whose copies here are not removed yet.
    var told: Set<Int64> = []
    var isSettling = false

    var waiters: [Data: [ObjectIdentifier: SharedWaiter]] = [:]
    var statistics = SharedStatistics()

    /// Takes over what the store has kept.
    init(_ notes: [Int64: [UInt8]]) {
        position = notes[0].map { String(decoding: $0, as: UTF8.self) }
        savedPosition = position
        for (number, bytes) in notes where number > 0 {
            pending[SharedForm.removal(bytes)] = number
        }
        statistics.pendingRemovals = pending.count
    }

    // MARK: Writes and removals

    /// Begins an operation.
    ///
    /// Two operations on one key at a time can be done in one order in the tier and in the other one here, so both are spoiled.
    mutating func begin(_ keys: [Data]?) -> Int {
        lastOperation += 1
        let number = lastOperation
        operations[number] = Operation(keys: keys, position: position)
        let others = keys.map { $0.reduce(wideOperations) { $0.union(operationsByKey[$1] ?? []) } }
        for other in others ?? Set(operations.keys.filter { $0 != number }) {
            for number in [other, number] { operations[number]?.isSpoiled = true }
        }
        if let keys {
            for key in keys { operationsByKey[key, default: []].insert(number) }
        } else {
            wideOperations.insert(number)
        }
        return number
    }

    func isSpoiled(_ operation: Int) -> Bool { operations[operation]?.isSpoiled ?? true }

    /// Notes that entries were removed by another node or by hand.
    mutating func spoil(_ removal: SharedRemoval) {
        let concerned: any Sequence<Int> =
            if case .key(let key) = removal { operationsByKey[key] ?? [] } else { Array(operations.keys) }
        for number in concerned { operations[number]?.isSpoiled = true }
    }

    mutating func end(_ operation: Int) {
        for key in operations.removeValue(forKey: operation)?.keys ?? [] {
            operationsByKey[key]?.remove(operation)
            if operationsByKey[key]?.isEmpty == true { operationsByKey[key] = nil }
        }
        wideOperations.remove(operation)
    }

    /// Leaves an operation open whose step on this node has failed: its removal is tried again.
    mutating func owe(_ removals: [SharedRemoval], _ operation: Int) { operations[operation]?.debt = removals }

    var debts: [Int: [SharedRemoval]] { operations.compactMapValues(\.debt) }

    /// A Boolean value that indicates whether a call or a task of this node is at work.
    var isBusy: Bool { isSettling || operations.values.contains { $0.debt == nil } }

    /// A Boolean value that indicates whether there is anything to tell the tier or to remove here.
    var isSettled: Bool { pending.isEmpty && !operations.values.contains { $0.debt != nil } }

    // MARK: Pending removals

    /// Adds removals, and returns the notes to change and whether there were too many.
    mutating func pend(
        _ removals: [SharedRemoval], limit: Int
    ) -> (notes: [Int64: [UInt8]?], hasOverflowed: Bool) {
        var notes: [Int64: [UInt8]?] = [:]
        func add(_ removal: SharedRemoval, _ state: inout SharedState) {
            // Random, because another process may have notes in the same store.
            let number = Int64.random(in: 1...(1 << 62))
            if let old = state.pending.updateValue(number, forKey: removal) { notes.updateValue(nil, forKey: old) }
            notes.updateValue(SharedForm.bytes(of: removal), forKey: number)
        }
        for removal in removals { add(removal, &self) }
        let hasOverflowed = pending.count > max(1, limit)
        if hasOverflowed {
            for number in pending.values { notes.updateValue(nil, forKey: number) }
            pending = [:]
            add(.all, &self)
        }
        statistics.pendingRemovals = pending.count
        return (notes, hasOverflowed)
    }

    /// Forgets removals that were sent, unless they were added again, and returns the notes to delete.
    mutating func forget(_ sent: [(SharedRemoval, Int64)]) -> [Int64: [UInt8]?] {
        for (removal, number) in sent where pending[removal] == number { pending[removal] = nil }
        told.subtract(sent.map { $1 })
        statistics.pendingRemovals = pending.count
        return [Int64: [UInt8]?](uniqueKeysWithValues: sent.map { ($1, nil) })
    }

    // MARK: Position

    mutating func move(to position: String) { self.position = position }

    /// Returns the position to save now; nil for none.
    ///
    /// It is not behind a message of this node whose operation is not done: after a kill the next process has to get it.
    mutating func positionToSave(isLast: Bool = false) -> String? {
        let oldest = operations.min { $0.key < $1.key }?.value
        let now = SharedClock.now
        guard let safe = oldest == nil ? position : oldest?.position else { return nil }
        // The tier can know more than at the last time, though the position is the same.
        if !isLast, safe == savedPosition || savedAt.map({ now - $0 < .seconds(1) }) ?? false { return nil }
        (savedPosition, savedAt) = (safe, now)
        return safe
    }
}

/// What a node asks of a tier, of which a full one may refuse a kind.
enum SharedWork {
    case store, remove, follow
}

/// A load that waits until another node has loaded its keys.
final class SharedWaiter: Sendable {
    private let state = Mutex<(isDone: Bool, continuation: CheckedContinuation<Void, Never>?)>((false, nil))

    func wake() {
        let continuation = state.withLock { state in
            defer { state = (true, nil) }
            return state.continuation
        }
        continuation?.resume()
    }

    /// Waits until it is woken, for a time at most.
    func wait(_ time: Duration) async {
        let end = Task {
            await SharedClock.pause(time)
            wake()
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = state.withLock { state in
                    if !state.isDone { state.continuation = continuation }
                    return state.isDone
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            wake()
        }
        end.cancel()
    }
}
