internal import LarderLocks

/// An object that releases memory when it gets scarce.
package protocol PressureResponder: AnyObject, Sendable {
    func handleMemoryPressure(_ level: MemoryPressure)
}

/// Passes the system's memory pressure on to every cache that wants it.
///
/// The source is asked for with the first cache, and stays: on Linux a thread and a few descriptors.
package final class PressureWatcher: Sendable {
    /// The watcher of the process.
    package static let ofProcess = PressureWatcher(makeSource: PressureSource.system)

    private struct Member: Sendable {
        weak var responder: (any PressureResponder)?
    }

    private struct State {
        var members: [ObjectIdentifier: Member] = [:]
        var source: PressureSource?
        /// A Boolean value that indicates whether a source was asked for; if there is none, later caches do not ask again.
        var hasAsked = false
    }

    /// Guards the list of caches and the source; responders are called outside it.
    private let state = Mutex(State())
    private let makeSource: @Sendable (@escaping @Sendable (MemoryPressure) -> Void) -> PressureSource?

    package init(
        makeSource: @escaping @Sendable (@escaping @Sendable (MemoryPressure) -> Void) -> PressureSource?
    ) {
        self.makeSource = makeSource
    }

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
            if state.hasAsked { return }
            state.hasAsked = true
            state.source = makeSource { [weak self] level in self?.notify(level) }
        }
    }

    package func remove(_ identifier: ObjectIdentifier) { state.withLock { $0.members[identifier] = nil } }
}

/// The urgency of a request to release memory.
public enum MemoryPressure: Sendable, Hashable {
    /// Memory is getting scarce.
    ///
    /// Caches release half of their entries in memory, unless they are told otherwise.
    case warning
    /// Memory is almost exhausted.
    ///
    /// Caches release all entries in memory.
    case critical
}
