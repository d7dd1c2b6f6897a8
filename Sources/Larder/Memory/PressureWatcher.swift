internal import Synchronization

/// Something that gives memory back when it gets scarce.
package protocol PressureResponder: AnyObject, Sendable {
    func handleMemoryPressure(_ level: MemoryPressure)
}

/// Passes the system's memory pressure on to every cache that wants it: one watcher a process, while there is a cache.
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
    }

    /// Guards who listens and whether the source runs; responders are called outside it.
    private let state = Mutex(State())
    private let makeSource: @Sendable (@escaping @Sendable (MemoryPressure) -> Void) -> PressureSource?

    package init(
        makeSource: @escaping @Sendable (@escaping @Sendable (MemoryPressure) -> Void) -> PressureSource?
    ) {
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
            if state.hasAsked { return }
            state.hasAsked = true
            state.source = makeSource { [weak self] level in self?.notify(level) }
        }
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
