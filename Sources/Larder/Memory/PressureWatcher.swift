internal import Synchronization

/// Something that gives memory back when it gets scarce.
package protocol PressureResponder: AnyObject, Sendable {
    func handleMemoryPressure(_ level: MemoryPressure)
}

/// Passes the system's memory pressure on to every cache that wants it: one watcher a process, while there is a cache.
///
/// A program that makes caches and drops them in a loop would make sources, with threads and descriptors, faster than they
/// end. So there are only so many a second; who comes then is listened for a second later, if it is still there.
package final class PressureWatcher: Sendable {
    /// The one of the process.
    package static let shared = PressureWatcher(makeSource: PressureSource.system)

    private struct Member: Sendable {
        weak var responder: (any PressureResponder)?
    }

    private struct State {
        var members: [ObjectIdentifier: Member] = [:]
        var source: PressureSource?
        /// Whether a source was asked for since the first came; where there is none, not everyone asks again.
        var hasAsked = false
        /// When the first of the latest sources was made, and how many there are of these.
        var burst = (start: Int64.min, count: 0)
        /// Whether one is to be made later.
        var isDeferred = false
    }

    /// Guards who listens and whether the source runs; responders are called outside it.
    private let state = Mutex(State())
    private let makeSource: @Sendable (@escaping @Sendable (MemoryPressure) -> Void) -> PressureSource?
    private let timekeeper: Timekeeper

    /// How many sources are made within a second.
    package static let mostAtOnce = 8

    package init(
        timekeeper: Timekeeper = .system,
        makeSource: @escaping @Sendable (@escaping @Sendable (MemoryPressure) -> Void) -> PressureSource?
    ) {
        self.timekeeper = timekeeper
        self.makeSource = makeSource
    }

    /// How many caches listen.
    package var memberCount: Int { state.withLock { $0.members.count } }

    /// Whether a source of the system's is being watched.
    package var isWatching: Bool { state.withLock { $0.source != nil } }

    /// Whether this object listens.
    package func isListening(_ responder: AnyObject?) -> Bool {
        guard let responder else { return false }
        return state.withLock { $0.members[ObjectIdentifier(responder)] != nil }
    }

    /// Tells every cache.
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
        // Where the clock was set back, too.
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
