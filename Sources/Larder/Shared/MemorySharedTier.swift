public import Foundation
internal import LarderLocks
internal import LarderStore

/// A shared tier in the memory of this process, for tests and for several managers of one program.
///
/// Each object is a node:
///
/// ```swift
/// let tier = MemorySharedTier()
/// let other = MemorySharedTier(joining: tier)
/// ```
public final class MemorySharedTier: SharedTier {
    private let memory: SharedMemory
    private let node: Int
    private let isCut = Atomic(false)
    /// The numbers of the last messages when this node asked for the end: its own up to there are given to it too.
    private let ends = Mutex<[SharedSpace: Int]>([:])

    /// Creates the first node of a tier without entries.
    ///
    /// - Parameters:
    ///   - messageLimit: The number of messages that are kept for nodes that come later.
    ///   - clock: The clock of ages.
    public init(messageLimit: Int = 10_000, clock: (@Sendable () -> Date)? = nil) {
        memory = SharedMemory(max(1, messageLimit), clock ?? SystemClock.date)
        node = memory.join()
    }

    /// Creates another node of a tier.
    ///
    /// - Parameter other: A node of the tier.
    public init(joining other: MemorySharedTier) {
        memory = other.memory
        node = memory.join()
    }

    /// A Boolean value that indicates whether the node reaches the tier.
    ///
    /// Set it to false for a test of what a program does without the tier. Calls that wait then end.
    public var isAvailable: Bool {
        get { !isCut.load(ordering: .relaxed) }
        set {
            isCut.store(!newValue, ordering: .relaxed)
            memory.wake()
        }
    }

    /// The node does not reach its tier.
    public struct Unavailable: Error {}

    /// The number of tasks that wait for changes, of all nodes.
    package var waitingCount: Int { memory.waitingCount }

    private func requireTier() throws {
        if !isAvailable { throw Unavailable() }
    }

    /// Returns the entry of a key, or a lease.
    public func fetch(_ key: Data, in space: SharedSpace, lease: Duration?) async throws -> SharedFetch {
        try requireTier()
        return memory.change(space) { $0.fetch(key, lease, at: $1) }
    }

    /// Stores an entry, and returns whether that was done.
    public func store(
        _ entry: SharedEntry, forKey key: Data, in space: SharedSpace, lease: SharedLease?
    ) async throws -> Bool {
        try requireTier()
        return memory.change(space) { [node] in $0.store(entry, key, lease, by: node, at: $1) }
    }

    /// Lets a lease begin its age again, or gives it back.
    public func renew(_ lease: SharedLease, forKey key: Data, in space: SharedSpace, age: Duration?) async throws {
        try requireTier()
        memory.change(space) { [node] in $0.renew(lease, key, age, by: node, at: $1) }
    }

    /// Removes entries for all nodes.
    public func remove(_ removals: [SharedRemoval], in space: SharedSpace) async throws {
        try requireTier()
        memory.change(space) { [node] space, _ in for removal in removals { space.remove(removal, by: node) } }
    }

    /// Removes an entry that cannot be used, unless another one has taken its place.
    public func discard(_ entry: SharedEntry, forKey key: Data, in space: SharedSpace) async throws {
        try requireTier()
        memory.change(space) { space, _ in space.discard(entry, key) }
    }

    /// Returns the messages of other nodes, and waits for one.
    public func changes(in space: SharedSpace, after position: String?) async throws -> SharedChanges {
        while true {
            // What changes behind this look ends the wait below.
            let seen = memory.changeCount
            try requireTier()
            try Task.checkCancellation()
            let end = ends.withLock { $0[space] ?? .max }
            let (changes, last) = memory.change(space) { [node] space, _ in
                (space.changes(after: position, for: node, from: end), space.lastMessage)
            }
            if position == nil { ends.withLock { $0[space] = last } }
            // The messages of this node move the position too.
            if changes.position != position || !changes.isComplete { return changes }
            await memory.nextChange(after: seen)
        }
    }
}

/// What the nodes of a tier share.
private final class SharedMemory: Sendable {
    private struct State {
        var spaces: [SharedSpace: MemorySpace] = [:]
        var nodeCount = 0
        var changeCount = 0
        /// Those who wait for a change, by their numbers.
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
        var waiterCount = 0
    }

    private let messageLimit: Int
    private let clock: @Sendable () -> Date
    private let state = Mutex(State())

    init(_ messageLimit: Int, _ clock: @escaping @Sendable () -> Date) {
        (self.messageLimit, self.clock) = (messageLimit, clock)
    }

    func join() -> Int {
        state.withLock { state in
            state.nodeCount += 1
            return state.nodeCount
        }
    }

    var changeCount: Int { state.withLock { $0.changeCount } }
    var waitingCount: Int { state.withLock { $0.waiters.count } }

    /// Changes a space, and wakes those who wait if there is a message.
    func change<R: Sendable>(_ space: SharedSpace, _ body: @Sendable (inout MemorySpace, _ now: Int64) -> R) -> R {
        let now = SystemClock.milliseconds(of: clock())
        let (result, hasMessage) = state.withLock { state -> (R, Bool) in
            let last = state.spaces[space]?.lastMessage ?? 0
            let result = body(&state.spaces[space, default: MemorySpace(messageLimit)], now)
            return (result, state.spaces[space]?.lastMessage != last)
        }
        if hasMessage { wake() }
        return result
    }

    func wake() {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.changeCount += 1
            defer { state.waiters = [:] }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until something changes after a number of changes, or the task is cancelled.
    func nextChange(after count: Int) async {
        let number = state.withLock { state in
            state.waiterCount += 1
            return state.waiterCount
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.changeCount != count || Task.isCancelled { return true }
                    state.waiters[number] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
        }
    }
}
