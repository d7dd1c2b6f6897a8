public import Foundation
internal import Larder
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

/// The entries, leases and messages of one cache in a tier in memory.
struct MemorySpace: Sendable {
    private struct Stored {
        var entry: SharedEntry
        /// The last moment of the entry.
        let end: Int64
        /// The number of removals when it was stored.
        let stamp: Int
    }

    private struct Lease {
        let token: String
        var end: Int64
        /// The number of removals when it was given.
        let stamp: Int
    }

    private struct Sent {
        let node: Int
        let message: SharedChanges.Message
    }

    /// The number of tags, and of prefixes, whose removals are remembered; then the older half is forgotten, and all entries from before.
    static let (tagLimit, prefixLimit) = (10_000, 100)

    private let messageLimit: Int
    /// What positions of this space begin with.
    private let name = UUID().uuidString
    private var entries: [Data: Stored] = [:]
    private var leases: [Data: Lease] = [:]
    /// The keys for whose entries nodes wait.
    private var awaited: Set<Data> = []
    /// The number of entries, leases and awaited keys at which those that have ended are removed.
    private var sweepCount = 1024
    private var tokenCount = 0
    /// Removals of tags, of prefixes and of all are counted.
    ///
    /// An entry or a lease counts only if none that concerns it is younger.
    private var removalCount = 0
    private var lastRemovalOfAll = 0
    private var lastRemovals: [String: Int] = [:]
    private var lastRemovalsOfPrefixes: [Data: Int] = [:]
    private var messages: [Sent] = []
    /// The number of messages that were dropped because there were too many.
    private var droppedCount = 0

    init(_ messageLimit: Int) { self.messageLimit = messageLimit }

    /// The number of the last message.
    var lastMessage: Int { droppedCount + messages.count }

    private func stands(_ stamp: Int, _ key: Data, _ tags: Set<String>) -> Bool {
        stamp >= lastRemovalOfAll && tags.allSatisfy { stamp >= lastRemovals[$0] ?? 0 }
            && lastRemovalsOfPrefixes.allSatisfy { stamp >= $0.value || !key.starts(with: $0.key) }
    }

    private mutating func send(_ message: SharedChanges.Message, by node: Int) {
        messages.append(Sent(node: node, message: message))
        // Moved once as many were dropped as are left.
        if messages.count < 2 * messageLimit { return }
        droppedCount += messages.count - messageLimit
        messages.removeFirst(messages.count - messageLimit)
    }

    /// Ends the lease of a key, and tells those who wait for its entry.
    private mutating func endLease(_ key: Data, by node: Int) {
        leases[key] = nil
        if awaited.remove(key) != nil { send(.loaded(key), by: node) }
    }

    private mutating func sweep(at now: Int64) {
        if entries.count + leases.count + awaited.count < sweepCount { return }
        entries = entries.filter { $0.value.end >= now && stands($0.value.stamp, $0.key, $0.value.entry.tags) }
        leases = leases.filter { $0.value.end >= now }
        awaited = awaited.filter { leases[$0] != nil }
        sweepCount = 1024 + 2 * (entries.count + leases.count + awaited.count)
    }

    // MARK: Calls

    mutating func fetch(_ key: Data, _ age: Duration?, at now: Int64) -> SharedFetch {
        if var stored = entries[key] {
            if stored.end >= now && stands(stored.stamp, key, stored.entry.tags) {
                if stored.end != .max { stored.entry.age = .milliseconds(stored.end - now) }
                return .entry(stored.entry)
            }
            entries[key] = nil
        }
        guard let age else { return .missing }
        // What is made under a lease from before a removal is stored nowhere.
        if let lease = leases[key], lease.end >= now, stands(lease.stamp, key, []) {
            awaited.insert(key)
            return .missing
        }
        sweep(at: now)
        tokenCount += 1
        let lease = Lease(token: "\(tokenCount)", end: now.addingSaturated(age.wholeMilliseconds), stamp: removalCount)
        leases[key] = lease
        return .lease(SharedLease(token: lease.token, stamp: "\(removalCount)"))
    }

    mutating func store(
        _ entry: SharedEntry, _ key: Data, _ lease: SharedLease?, by node: Int, at now: Int64
    ) -> Bool {
        if let lease {
            guard holds(lease, key, at: now) else { return false }
            guard let stamp = Int(lease.stamp), stands(stamp, key, entry.tags) else {
                endLease(key, by: node)
                return false
            }
        }
        sweep(at: now)
        let end = entry.age.map { now.addingSaturated($0.wholeMilliseconds) } ?? .max
        entries[key] = Stored(entry: entry, end: end, stamp: removalCount)
        if lease == nil {
            leases[key] = nil
            awaited.remove(key)
            send(.removed(.key(key)), by: node)
        } else {
            endLease(key, by: node)
        }
        return true
    }

    private func holds(_ lease: SharedLease, _ key: Data, at now: Int64) -> Bool {
        leases[key].map { $0.token == lease.token && $0.end >= now } ?? false
    }

    mutating func renew(_ lease: SharedLease, _ key: Data, _ age: Duration?, by node: Int, at now: Int64) {
        guard holds(lease, key, at: now) else { return }
        guard let age else { return endLease(key, by: node) }
        leases[key]?.end = now.addingSaturated(age.wholeMilliseconds)
    }

    mutating func remove(_ removal: SharedRemoval, by node: Int) {
        switch removal {
        case .key(let key):
            (entries[key], leases[key]) = (nil, nil)
            awaited.remove(key)
        case .tag(let tag):
            removalCount += 1
            lastRemovals[tag] = removalCount
            if lastRemovals.count > Self.tagLimit { raiseAll(to: Self.forgetOld(&lastRemovals)) }
        case .prefix(let prefix):
            removalCount += 1
            lastRemovalsOfPrefixes[prefix] = removalCount
            if lastRemovalsOfPrefixes.count > Self.prefixLimit {
                raiseAll(to: Self.forgetOld(&lastRemovalsOfPrefixes))
            }
        case .all:
            removalCount += 1
            forgetAll()
        }
        send(.removed(removal), by: node)
    }

    /// Forgets the older half of removals, and returns the last one of these.
    private static func forgetOld<Mark>(_ removals: inout [Mark: Int]) -> Int {
        let youngest = removals.values.sorted()[removals.count / 2]
        removals = removals.filter { $0.value > youngest }
        return youngest
    }

    private mutating func raiseAll(to removal: Int) { lastRemovalOfAll = max(lastRemovalOfAll, removal) }

    /// Removes all entries, and with them what is known of their tags and prefixes.
    private mutating func forgetAll() {
        (lastRemovalOfAll, lastRemovals, lastRemovalsOfPrefixes, entries) = (removalCount, [:], [:], [:])
    }

    mutating func discard(_ entry: SharedEntry, _ key: Data) {
        var stored = entries[key]?.entry
        stored?.age = entry.age
        if stored == entry { entries[key] = nil }
    }

    /// - Parameter end: The number of the last message of which the node gets its own ones too.
    func changes(after position: String?, for node: Int, from end: Int) -> SharedChanges {
        let last = position.map { number(of: $0) ?? -1 } ?? lastMessage
        let isKnown = (droppedCount...lastMessage).contains(last)
        let rest = isKnown ? messages.dropFirst(last - droppedCount) : []
        let own = max(0, end - (lastMessage - rest.count))
        return SharedChanges(
            messages: (rest.prefix(own) + rest.dropFirst(own).filter { $0.node != node }).map(\.message),
            position: "\(name) \(lastMessage)",
            isComplete: isKnown,
            isUpToDate: true)
    }

    /// Returns the number of the message behind which a position is; nil if it is none of this space.
    private func number(of position: String) -> Int? {
        let parts = position.split(separator: " ")
        return parts.count == 2 && parts[0] == name ? Int(parts[1]) : nil
    }
}

extension Duration {
    /// The milliseconds, rounded down and clamped.
    fileprivate var wholeMilliseconds: Int64 { SystemClock.saturated((self / .milliseconds(1)).rounded(.down)) }
}
