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
        /// The number of removals when it was given.
        let stamp: Int
    }

    private struct Sent {
        let node: Int
        let message: SharedChanges.Message
    }

    /// The number of tags whose removals are remembered; then the older half is forgotten, and all entries from before.
    static let tagLimit = 10_000

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
        entries = entries.filter { $0.value.end >= now && stands($0.value.stamp, $0.value.entry.tags) }
        leases = leases.filter { $0.value.end >= now }
        awaited = awaited.filter { leases[$0] != nil }
        sweepCount = 1024 + 2 * (entries.count + leases.count + awaited.count)
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
        guard let age else { return .missing }
        // What is made under a lease from before a removal of all is stored nowhere.
        if let lease = leases[key], lease.end >= now, stands(lease.stamp, []) {
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
            guard let stamp = Int(lease.stamp), stands(stamp, entry.tags) else {
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
            if lastRemovals.count > Self.tagLimit { forgetOldTags() }
        case .all:
            removalCount += 1
            forgetAll()
        }
        send(.removed(removal), by: node)
    }

    private mutating func forgetOldTags() {
        let youngest = lastRemovals.values.sorted()[lastRemovals.count / 2]
        lastRemovals = lastRemovals.filter { $0.value > youngest }
        lastRemovalOfAll = max(lastRemovalOfAll, youngest)
    }

    /// Removes all entries, and with them what is known of their tags.
    private mutating func forgetAll() { (lastRemovalOfAll, lastRemovals, entries) = (removalCount, [:], [:]) }

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
