internal import Foundation
internal import LarderStore

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
        /// A Boolean value that indicates whether a node waits for the entry.
        var isAwaited = false
    }

    private struct Sent {
        let node: Int
        let message: SharedChanges.Message
    }

    /// The number of tags whose removals are remembered; then all entries are forgotten.
    static let tagLimit = 10_000

    private let messageLimit: Int
    private var entries: [Data: Stored] = [:]
    private var leases: [Data: Lease] = [:]
    private var tokenCount = 0
    /// Removals of tags and of all are counted.
    ///
    /// An entry or a lease counts only if none that concerns it is younger.
    private var removalCount = 0
    private var lastRemovalOfAll = 0
    private var lastRemovals: [String: Int] = [:]
    private var messages: [Sent] = []
    /// The number of messages that were dropped because there were too many.
    private var droppedCount = 0

    init(_ messageLimit: Int) { self.messageLimit = messageLimit }

    /// The number of the last message.
    var lastMessage: Int { droppedCount + messages.count }

    private func stands(_ stamp: Int, _ tags: Set<String>) -> Bool {
        stamp >= lastRemovalOfAll && tags.allSatisfy { stamp >= lastRemovals[$0] ?? 0 }
    }

    private mutating func send(_ message: SharedChanges.Message, by node: Int) {
        messages.append(Sent(node: node, message: message))
        if messages.count <= messageLimit { return }
        droppedCount += messages.count - messageLimit
        messages.removeFirst(messages.count - messageLimit)
    }

    // MARK: Calls

    mutating func fetch(_ key: Data, _ age: Duration?, at now: Int64) -> SharedFetch {
        if var stored = entries[key] {
            if stored.end >= now && stands(stored.stamp, stored.entry.tags) {
                if stored.end != .max { stored.entry.age = .milliseconds(stored.end - now) }
                return .entry(stored.entry)
            }
            entries[key] = nil
        }
        if let lease = leases[key], lease.end >= now {
            leases[key]?.isAwaited = true
            return .missing
        }
        guard let age else { return .missing }
        tokenCount += 1
        let lease = Lease(token: "\(tokenCount)", end: now.addingSaturated(age.wholeMilliseconds))
        leases[key] = lease
        return .lease(SharedLease(token: lease.token, stamp: "\(removalCount)"))
    }

    mutating func store(
        _ entry: SharedEntry, _ key: Data, _ lease: SharedLease?, by node: Int, at now: Int64
    ) -> Bool {
        let own = leases[key]
        if let lease {
            guard let own, own.token == lease.token, own.end >= now, let stamp = Int(lease.stamp),
                stands(stamp, entry.tags)
            else { return false }
        }
        leases[key] = nil
        let end = entry.age.map { now.addingSaturated($0.wholeMilliseconds) } ?? .max
        entries[key] = Stored(entry: entry, end: end, stamp: removalCount)
        if lease == nil {
            send(.removed(.key(key)), by: node)
        } else if own?.isAwaited == true {
            send(.loaded(key), by: node)
        }
        return true
    }

    mutating func renew(_ lease: SharedLease, _ key: Data, _ age: Duration?, by node: Int, at now: Int64) {
        guard let own = leases[key], own.token == lease.token, own.end >= now else { return }
        if let age {
            leases[key]?.end = now.addingSaturated(age.wholeMilliseconds)
        } else {
            leases[key] = nil
            if own.isAwaited { send(.loaded(key), by: node) }
        }
    }

    mutating func remove(_ removal: SharedRemoval, by node: Int) {
        switch removal {
        case .key(let key): (entries[key], leases[key]) = (nil, nil)
        case .tag(let tag):
            removalCount += 1
            lastRemovals[tag] = removalCount
            if lastRemovals.count > Self.tagLimit { forgetAll() }
        case .all:
            removalCount += 1
            forgetAll()
        }
        send(.removed(removal), by: node)
    }

    /// Removes all entries, and with them what is known of their tags.
    private mutating func forgetAll() { (lastRemovalOfAll, lastRemovals, entries) = (removalCount, [:], [:]) }

    func changes(after position: String?, for node: Int) -> SharedChanges {
        let last = position.map { Int($0) ?? -1 } ?? lastMessage
        let isKnown = (droppedCount...lastMessage).contains(last)
        let rest = isKnown ? messages.dropFirst(last - droppedCount) : []
        return SharedChanges(
            messages: rest.filter { $0.node != node }.map(\.message), position: "\(lastMessage)", isComplete: isKnown,
            isUpToDate: true)
    }
}

extension Duration {
    /// The milliseconds, rounded down and clamped.
    fileprivate var wholeMilliseconds: Int64 { SystemClock.saturated((self / .milliseconds(1)).rounded(.down)) }
}
