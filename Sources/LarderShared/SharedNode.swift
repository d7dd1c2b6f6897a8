internal import Foundation
internal import Larder
public import LarderLocks
internal import LarderStore

/// A cache of this node and its tier: it applies what others remove, and sends what this node removes.
@usableFromInline
final class SharedNode<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    let cache: Cache<Key, Value>
    let tier: any SharedTier
    let options: SharedOptions
    let space: SharedSpace
    let state: Mutex<SharedState>
    /// A Boolean value that indicates whether the tier was silent for so long that no copy is served.
    @usableFromInline let isSilent = Atomic(false)
    /// What its generators know of the time for which expired copies are kept.
    let staleWindow = StaleWindow()
    private let follower = Mutex<Task<Void, Never>?>(nil)
    /// The task that tells the tier of removals; nil if there is none.
    private let sender = Mutex<Task<Void, any Error>?>(nil)
    /// How many times another process had shared the file when this node began.
    private let losses: Int

    /// The times between two attempts to reach a tier that does not answer, from the first one to the longest.
    private static var pauses: ClosedRange<Duration> { .milliseconds(50)...(.seconds(10)) }

    /// Waits before another attempt, for twice as long as before the last one, but not exactly: many nodes that lost one tier do not
    /// come back at one moment.
    private static func pause(_ time: inout Duration) async { await SharedClock.pause(longer(&time)) }

    private static func longer(_ time: inout Duration) -> Duration {
        defer { time = min(time * 2, pauses.upperBound) }
        return time * Double.random(in: 0.5...1)
    }

    /// The number of removals that are sent at once.
    private static var batchCount: Int { 500 }

    init(_ cache: Cache<Key, Value>, _ tier: any SharedTier, _ options: SharedOptions) async throws(CacheError) {
        (self.cache, self.tier, self.options) = (cache, tier, options)
        (space, losses) = (SharedForm.space(cache.declaration), cache.sharingLosses)
        state = Mutex(SharedState(try await cache.notes()))
    }

    /// Begins to follow the tier, and waits until this node is up to date, or for a time.
    func start() async {
        settle()
        let end = SharedClock.now + options.catchUpLimit
        // A tier that was made a moment ago is being connected. A failed attempt would be followed by a pause.
        while !tier.isAvailable, SharedClock.now < end, !Task.isCancelled { await SharedClock.pause(.milliseconds(1)) }
        follower.withLock { $0 = Task { await self.follow() } }
        while !isReadable, SharedClock.now < end, !Task.isCancelled { await SharedClock.pause(.milliseconds(1)) }
        state.withLock { $0.hasBegun = true }
    }

    /// Refuses further calls, waits for those that run, and saves the position.
    func close() async {
        stop()
        // In a task that is not cancelled: an own step that is done later could undo one of the next handle, or of another process.
        await Task {
            while isStoring { await SharedClock.pause(.milliseconds(1)) }
            await cache.endLoads()
            if let position = state.withLock({ $0.positionToSave(isLast: true) }) { await save(position) }
        }.value
    }

    /// A Boolean value that indicates whether something of this node is still being stored here or in the tier.
    var isStoring: Bool { state.withLock { $0.isBusy } || cache.isStoringLoads }

    func stop() {
        state.withLock { $0.isClosed = true }
        isSilent.store(true, ordering: .relaxed)
        follower.withLock { $0?.cancel() }
    }

    /// A Boolean value that indicates whether it was closed, or another process has shared the file during a suspension.
    var isClosed: Bool { state.withLock { $0.isClosed } || cache.sharingLosses != losses }

    func requireOpen() throws(CacheError) {
        if !isClosed { return }
        throw CacheError(
            CacheError.Code.closed,
            "The shared cache \"\(cache.name)\" is closed. Call shared(through:) again, or use the cache of this node.")
    }

    /// A Boolean value that indicates whether the tier may be read.
    ///
    /// As long as it was not told of a removal it has what this node has removed.
    var isReadable: Bool {
        tier.isAvailable && tier.hasMessages && state.withLock { $0.isCurrent && $0.pending.isEmpty }
    }

    func count(_ change: @Sendable (inout SharedStatistics) -> Void) { state.withLock { change(&$0.statistics) } }

    // MARK: Messages of others

    private func follow() async {
        var pause = Self.pauses.lowerBound
        while !isClosed {
            do {
                let (position, isCurrent) = state.withLock { ($0.position, $0.isCurrent) }
                let changes = try await changes(after: position, isCurrent)
                noteHeard()
                try await apply(changes, isFirst: position == nil)
                pause = Self.pauses.lowerBound
            } catch {
                if Task.isCancelled || Self.isEnd(error) { return stop() }
                noteRefusal(error, of: .follow)
                noteLost(error)
                await Self.pause(&pause)
            }
        }
        stop()
    }

    /// Takes in all messages that there are now.
    ///
    /// Whether the node is current is left to the task that follows the tier.
    func catchUp() async throws {
        try requireOpen()
        do {
            let position = state.withLock { $0.position }
            let end = try await tier.changes(in: space, after: nil).position
            // Without a position nothing is known of the copies that there are.
            guard var last = position else { return try await apply([.all]) }
            while last != end {
                let changes = try await tier.changes(in: space, after: last)
                try await apply(removals(of: changes, isFirst: false))
                if changes.isUpToDate { return }
                last = changes.position
            }
        } catch let error as CacheError {
            throw error
        } catch let error as CancellationError {
            throw error
        } catch {
            throw CacheError(
                .storageUnavailable,
                "The tier of the shared cache \"\(cache.name)\" cannot be reached (\(error)). Try again.",
                underlying: error)
        }
    }

    /// Returns the next messages; a node that may have missed some does not wait for them.
    private func changes(after position: String?, _ isCurrent: Bool) async throws -> SharedChanges {
        if !isCurrent {
            let end = try await tier.changes(in: space, after: nil)
            if position == nil || end.position == position { return end }
        }
        return try await tier.changes(in: space, after: position)
    }

    /// Returns whether an error of the cache says that nothing will go any more.
    private static func isEnd(_ error: any Error) -> Bool {
        let code = (error as? CacheError)?.code
        return code == CacheError.Code.closed || code == CacheError.Code.superseded
    }

    /// Returns what messages remove on this node, and reports what was lost.
    private func removals(of changes: SharedChanges, isFirst: Bool) -> [SharedRemoval] {
        var removals: [SharedRemoval] = []
        if !changes.isComplete || isFirst {
            // Without a position nothing is known of the copies that there are.
            removals.append(.all)
            if !isFirst {
                report(
                    .sharedMessagesLost,
                    "Messages of other nodes were lost, so the copies of the cache on this node were removed.")
            }
        }
        if changes.hasLostWrites {
            count { $0.lostWrites += 1 }
            report(
                .sharedWritesLost,
                "The tier is back at an earlier moment, and has lost writes that it had confirmed, so all its entries are dropped."
            )
        }
        for case .removed(let removal) in changes.messages { removals.append(removal) }
        return removals
    }

    private func apply(_ changes: SharedChanges, isFirst: Bool) async throws {
        try await apply(removals(of: changes, isFirst: isFirst))
        for message in changes.messages {
            switch message {
            case .loaded(let key), .removed(.key(let key)): wake(key)
            case .removed: wake(nil)
            }
        }
        let (saved, isBack) = state.withLock { state -> (String?, Bool) in
            state.move(to: changes.position)
            state.statistics.messages += changes.messages.count
            let isBack = changes.isUpToDate && state.isLossReported
            if changes.isUpToDate {
                // It may be another server than the one that has refused something.
                if !state.isCurrent { state.refusals = [:] }
                (state.isCurrent, state.isLossReported, state.hasBegun, state.loss) = (true, false, true, nil)
                if !state.isClosed { isSilent.store(false, ordering: .relaxed) }
            }
            return (state.positionToSave(), isBack)
        }
        if isBack { report(.sharedTierFound, "The tier is there again, and what was missed was taken in.") }
        if let saved { await save(saved) }
    }

    private func noteHeard() { state.withLock { $0.heardAt = SharedClock.now } }

    private func noteLost(_ error: any Error) {
        // What fails on this node says nothing of the tier.
        let isLocal = error is CacheError
        let isNew = state.withLock { state in
            (state.isCurrent, state.loss) = (false, "\(error)")
            // With the state: a node that says that it is alone serves no copy any more.
            if let limit = options.maxSilence, SharedClock.now - state.heardAt > limit {
                isSilent.store(true, ordering: .relaxed)
            }
            let isNew = state.hasBegun && !state.isLossReported
            if isNew { state.isLossReported = true }
            return isNew
        }
        if isNew && isLocal {
            report(
                .writeFailed,
                "What other nodes have removed could not be removed here, and is tried again. \(error)")
        } else if isNew && !(error is SharedRefusal) {
            report(
                .sharedTierLost,
                "The tier cannot be reached (\(error)). Until it can, values are loaded on this node alone.")
        }
    }

    // MARK: Copies on this node

    /// Removes copies.
    func apply(_ removals: [SharedRemoval]) async throws {
        if removals.isEmpty { return }
        state.withLock { state in for removal in removals { state.spoil(removal) } }
        var keys: [Key] = []
        for removal in removals {
            switch removal {
            case .key(let bytes):
                guard let key = key(bytes) else {
                    report(.undecodable, "A message names a key that is none, so all copies were removed.")
                    _ = try await cache.removeAll()
                    continue
                }
                keys.append(key)
            case .tag(let tag): _ = try await cache.removeAll(tagged: tag)
            case .prefix(let bytes):
                // Prefixes are those of keys that are texts.
                if case .text(let text)? = SharedForm.key(bytes) {
                    _ = try await cache.removeAll(prefix: text)
                } else {
                    _ = try await cache.removeAll()
                }
            case .all: _ = try await cache.removeAll()
            }
        }
        // Each is a commit, and no removal undoes another one.
        _ = try await cache.removeValues(forKeys: keys)
    }

    private func key(_ bytes: Data) -> Key? {
        SharedForm.key(bytes).flatMap { cache.key(of: $0) }
    }

    // MARK: Removals of this node

    /// Notes removals that the tier could not be told, before the change on this node.
    func pend(_ removals: [SharedRemoval]) async throws {
        let (notes, hasOverflowed) = state.withLock { $0.pend(removals, limit: options.pendingLimit) }
        do {
            try await cache.save(notes, "note a removal for its tier")
        } catch {
            settle()
            throw error
        }
        if hasOverflowed {
            report(
                .sharedRemovalsOverflowed,
                "More than \(options.pendingLimit) removals wait for the tier, so all entries will be removed from it.")
        }
        settle()
    }

    /// Leaves an operation open whose change on this node has failed, until its removal is done.
    func owe(_ removals: [SharedRemoval], _ operation: Int) {
        state.withLock { $0.owe(removals, operation) }
        settle()
    }

    /// Sends what is pending and removes what is owed, in a task of its own, until nothing is left.
    private func settle() {
        let begins = state.withLock { state in
            if state.isSettling || state.isSettled || state.isClosed { return false }
            state.isSettling = true
            return true
        }
        if begins { Task { await self.settleAll() } }
    }

    private func settleAll() async {
        var pause = Self.pauses.lowerBound
        while state.withLock({ state in
            state.isSettling = !state.isClosed && !state.isSettled
            return state.isSettling
        }) {
            do {
                // A tier that is there again is told soon. Its refusals and failures are followed by longer pauses.
                if tier.isAvailable {
                    try await send()
                } else if state.withLock({ $0.debts.isEmpty }) {
                    pause = Self.pauses.lowerBound
                }
                for (operation, removals) in state.withLock({ $0.debts }) {
                    try await apply(removals)
                    state.withLock { $0.end(operation) }
                }
                if state.withLock({ $0.isSettled }) { continue }
            } catch {
                noteRefusal(error, of: .remove)
                if Self.isEnd(error) { stop() }
            }
            // A call that closes the node waits for this task.
            let end = SharedClock.now + Self.longer(&pause)
            while !isClosed, SharedClock.now < end {
                await SharedClock.pause(min(end - SharedClock.now, .milliseconds(50)))
            }
        }
    }

    /// Tells the tier what is pending, with the task that does so already if there is one.
    func send() async throws {
        let task = sender.withLock { running in
            if let running { return running }
            let task = Task {
                defer { self.sender.withLock { $0 = nil } }
                try await self.sendAll()
            }
            running = task
            return task
        }
        try await task.value
    }

    /// Tells the tier what is pending, and then removes the copies here: what was set in the meantime is on no other node.
    private func sendAll() async throws {
        while true {
            let (batch, told) = state.withLock { state in
                (
                    state.pending.sorted { $0.value < $1.value }.prefix(Self.batchCount).map { ($0.key, $0.value) },
                    state.told
                )
            }
            if batch.isEmpty { return }
            let news = batch.filter { !told.contains($0.1) }
            if !news.isEmpty {
                try await tier.remove(news.map { $0.0 }, in: space)
                noteAccepted(.remove)
            }
            state.withLock { $0.told.formUnion(news.map { $0.1 }) }
            try await apply(batch.map { $0.0 })
            await save(state.withLock { $0.forget(batch) })
        }
    }

    private func save(_ position: String) async {
        await save([0: Array(tier.positionToKeep(position, in: space).utf8)])
    }

    /// Saves notes; what is not saved is done again after a restart.
    private func save(_ notes: [Int64: [UInt8]?]) async {
        do { try await cache.save(notes, "note the place among messages") } catch {}
    }

    // MARK: Refusals

    /// Reports that the tier answers and refuses, once until it accepts work of that kind.
    func noteRefusal(_ error: any Error, of work: SharedWork) {
        guard let refusal = error as? SharedRefusal else { return }
        let isNew = state.withLock { $0.refusals.updateValue(refusal.description, forKey: work) == nil }
        if isNew {
            report(
                .sharedTierRefuses,
                "The tier refuses what it is asked. \(refusal) Until it accepts it, values are loaded on this node alone."
            )
        }
    }

    /// Notes that the tier has accepted work.
    func noteAccepted(_ work: SharedWork) {
        let wasRefused = state.withLock { $0.refusals.removeValue(forKey: work) != nil }
        if wasRefused { report(.sharedTierFound, "The tier accepts again what it has refused.") }
    }

    /// What a program that watches the node wants to know.
    var health: SharedHealth {
        let (isAvailable, hasMessages, isClosed) = (tier.isAvailable, tier.hasMessages, isClosed)
        return state.withLock { state in
            if isClosed { return .alone("The shared cache is closed.") }
            if !isAvailable { return .alone(state.loss ?? "The tier cannot be reached.") }
            let refusals = [SharedWork.remove, .store, .follow].compactMap { state.refusals[$0] }
            if let refusal = refusals.first { return .refused(refusal) }
            if state.isCurrent && state.pending.isEmpty && hasMessages { return .current }
            return state.isLossReported ? .alone(state.loss ?? "The tier cannot be reached.") : .catchingUp
        }
    }

    // MARK: Waiting

    private func wake(_ key: Data?) {
        let waiters = state.withLock { state -> [SharedWaiter] in
            if let key { return state.waiters[key].map { Array($0.values) } ?? [] }
            return state.waiters.values.flatMap(\.values)
        }
        for waiter in waiters { waiter.wake() }
    }

    // MARK: Events

    func report(_ kind: CacheEvent.Kind, _ message: String, key: String? = nil) {
        cache.report(
            CacheEvent(kind, cacheName: cache.name, key: key, message: "Cache \"\(cache.name)\": \(message)"))
    }
}
