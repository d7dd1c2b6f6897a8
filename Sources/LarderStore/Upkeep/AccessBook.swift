internal import LarderLocks

/// An access to an entry.
@usableFromInline
package struct Access: Sendable {
    let id: Int64
    let revision: Int64
    /// Milliseconds since 1970.
    fileprivate(set) var moment: Int64
    /// The milliseconds by which the stored access may lag.
    fileprivate(set) var grain: Int64
    fileprivate var isTaken = false

    @usableFromInline
    package init(id: Int64, revision: Int64, moment: Int64, grain: Int64) {
        (self.id, self.revision, self.moment, self.grain) = (id, revision, moment, grain)
    }

    /// Returns the place of an access in the order of use, in which a write has twice its moment.
    static func order(at moment: Int64) -> Int64 { moment.addingSaturated(moment).addingSaturated(1) }
}

/// The last access of this process to each row, which is stored later.
///
/// Reads write nothing. Those that were taken to be stored stay until they are too many: the grain may have left them out,
/// and the order of use has them.
@usableFromInline
package final class AccessBook: Sendable {
    /// The number of new accesses after which it is time to store them.
    fileprivate static let batchSize = 4096

    fileprivate struct State {
        var accesses: [Int64: Access] = [:]
        /// The number of accesses that were not taken yet.
        var newCount = 0
    }

    private let state = Mutex(State())

    /// Notes accesses that memory has served.
    @usableFromInline
    package func note(servedByMemory served: [Access]) {
        state.withLock { state in
            for access in served { _ = state.note(access) }
        }
    }

    /// Notes an access, and returns whether it is time to store them.
    func note(_ access: Access) -> Bool { state.withLock { $0.note(access) } }

    /// Returns the accesses since the last call.
    func take() -> [Access] {
        state.withLock { state in
            let found = state.accesses.values.filter { !$0.isTaken }
            for access in found { state.accesses[access.id]?.isTaken = true }
            state.newCount = 0
            return found
        }
    }

    /// The moments of the accesses, by the ids of rows.
    var moments: [Int64: Int64] { state.withLock { $0.accesses.mapValues(\.moment) } }

    func lastAccess(_ id: Int64, _ revision: Int64) -> Int64? {
        state.withLock { $0.accesses[id].flatMap { $0.revision == revision ? $0.moment : nil } }
    }
}

extension AccessBook.State {
    fileprivate mutating func note(_ access: Access) -> Bool {
        var access = access
        let old = accesses[access.id]
        if let old, old.revision == access.revision {
            (access.moment, access.grain) = (max(access.moment, old.moment), min(access.grain, old.grain))
        } else if let old, old.moment > access.moment {
            return false
        }
        accesses[access.id] = access
        if old?.isTaken == false { return false }
        newCount += 1
        guard newCount % AccessBook.batchSize == 0 else { return false }
        if accesses.count >= 4 * AccessBook.batchSize { accesses = accesses.filter { !$0.value.isTaken } }
        // No upkeep takes them, as in a store that is only read.
        if accesses.count >= 64 * AccessBook.batchSize { (accesses, newCount) = ([:], 0) }
        return true
    }
}
