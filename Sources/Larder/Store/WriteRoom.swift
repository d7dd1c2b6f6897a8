internal import Synchronization

/// Room for the writes of tasks: who finds none waits before it has encoded anything.
///
/// A thread waits for its own write, so there are never more of those than threads. Tasks are as many as anybody likes,
/// and what all of them have encoded would have to be held until its turn comes.
package final class WriteRoom: Sendable {
    private struct State {
        var free: Int
        /// In the order in which they came; those before `next` have been let in.
        var waiting: [CheckedContinuation<Void, Never>?] = []
        var next = 0

        mutating func takePlace() -> Bool {
            guard free > 0 else { return false }
            free -= 1
            return true
        }

        mutating func popFirst() -> CheckedContinuation<Void, Never>? {
            guard next < waiting.count else { return nil }
            defer {
                next += 1
                if next == waiting.count {
                    (waiting, next) = ([], 0)
                } else if next >= 1024, 2 * next >= waiting.count {
                    waiting.removeFirst(next)
                    next = 0
                }
            }
            return waiting[next].take()
        }
    }

    private let state: Mutex<State>

    package init(_ places: Int) {
        state = Mutex(State(free: places))
    }

    /// How many wait to be let in.
    package var waitingCount: Int { state.withLock { $0.waiting.count - $0.next } }

    /// Waits for a place, in the order of the calls.
    package func enter() async {
        // Nobody waits where there is room: who leaves gives the place to whoever does.
        if state.withLock({ $0.takePlace() }) { return }
        await withCheckedContinuation { continuation in
            let isIn = state.withLock { state in
                if state.takePlace() { return true }
                state.waiting.append(continuation)
                return false
            }
            if isIn { continuation.resume() }
        }
    }

    /// Gives the place to whoever waits first.
    package func leave() {
        let next = state.withLock { state in
            let next = state.popFirst()
            if next == nil { state.free += 1 }
            return next
        }
        next?.resume()
    }
}
