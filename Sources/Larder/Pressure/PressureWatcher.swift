internal import LarderLocks

/// An object that releases memory when it gets scarce.
package protocol PressureResponder: AnyObject, Sendable {
    func handleMemoryPressure(_ level: MemoryPressure)
}

/// Passes the system's memory pressure on to every cache that wants it: one watcher a process, while there is a cache.
///
/// A program that creates and releases caches in a loop would create sources, with threads and descriptors, faster than
/// they end. So their number per second is limited; later caches are served a second later, if they still exist.
package final class PressureWatcher: Sendable {
    /// The watcher of the process.
    package static let shared = PressureWatcher(makeSource: PressureSource.system)

    private struct Member: Sendable {
        weak var responder: (any PressureResponder)?
    }

    private struct State {
        var members: [ObjectIdentifier: Member] = [:]
        var source: PressureSource?
        /// A Boolean value that indicates whether a source was requested since the first cache; if there is none, later
        /// caches do not ask again.
        var hasAsked = false
        /// The time at which the first of the latest sources was created, and their number.
        var burst = (start: Int64.min, count: 0)
        /// A Boolean value that indicates whether a source is to be created later.
        var isDeferred = false
    }

    /// Guards the list of caches and the source; responders are called outside it.
    private let state = Mutex(State())
    private let makeSource: @Sendable (@escaping @Sendable (MemoryPressure) -> Void) -> PressureSource?
    private let timekeeper: Timekeeper

    /// The maximum number of sources that are created within a second.
    package static let mostAtOnce = 8

    package init(
        timekeeper: Timekeeper = .system,
        makeSource: @escaping @Sendable (@escaping @Sendable (MemoryPressure) -> Void) -> PressureSource?
    ) {
        self.timekeeper = timekeeper
        self.makeSource = makeSource
    }

    /// The number of caches that listen.
    package var memberCount: Int { state.withLock { $0.members.count } }

    /// A Boolean value that indicates whether a source of the system is being watched.
    package var isWatching: Bool { state.withLock { $0.source != nil } }

    /// Returns whether this object listens.
    package func isListening(_ responder: AnyObject?) -> Bool {
        guard let responder else { return false }
        return state.withLock { $0.members[ObjectIdentifier(responder)] != nil }
    }

    /// Reports memory pressure to every cache.
    package func notify(_ level: MemoryPressure) {
        let members = state.withLock { $0.members.values.map(\.responder) }
        for case let member? in members { member.handleMemoryPressure(level) }
    }

    package func add(_ responder: any PressureResponder) {
        state.withLock { state in
            state.members[ObjectIdentifier(responder)] = Member(responder: responder)
            listen(&state)
        }
    }

    private func listen(_ state: inout State) {
        if state.hasAsked || state.isDeferred { return }
        let now = timekeeper.now()
        // Also true if the clock was set back.
        if !(0..<1000).contains(now.subtractingSaturated(state.burst.start)) { state.burst = (now, 0) }
        guard state.burst.count < Self.mostAtOnce else {
            state.isDeferred = true
            _ = timekeeper.wake(.seconds(1)) { [weak self] in
                self?.state.withLock { state in
                    state.isDeferred = false
                    if !state.members.isEmpty { self?.listen(&state) }
                }
            }
            return
        }
        state.burst.count += 1
        state.hasAsked = true
        state.source = makeSource { [weak self] level in self?.notify(level) }
    }

    package func remove(_ identifier: ObjectIdentifier) {
        let stopped = state.withLock { state in
            state.members[identifier] = nil
            guard state.members.isEmpty else { return nil as PressureSource? }
            state.hasAsked = false
            return state.source.take()
        }
        stopped?.stop()
    }
}
