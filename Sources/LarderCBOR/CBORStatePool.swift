import Synchronization

/// What a coder works on, and may work on again.
protocol CBORReusableState: AnyObject {
    /// Lets go of what the state holds and what holds the state.
    func finish()
}

/// Keeps one state per coder from call to call: buffer, frames and container boxes are half of what a small value costs.
///
/// The lock guards the one idle state and is held for a look. Copies of a coder share the pool; a second thread that
/// finds it empty makes a state of its own.
final class CBORStatePool<State: CBORReusableState>: Sendable {
    /// A state that nobody works on.
    ///
    /// Safety: whoever gives a state away is done with it, and `take` hands it to one caller. A state keeps nothing of
    /// the values it worked on. A decoder or container that was kept keeps its state from being given; an encoder's is
    /// closed, and refuses to write. A `Mutex` alone does not do: the compiler cannot see that `encode(to:)` and
    /// `init(from:)`, which are handed the state, are done with it.
    private struct Idle: @unchecked Sendable {
        let state: State
    }

    private let idle = Mutex<Idle?>(nil)

    /// The idle state; from now on it is the caller's alone.
    func take() -> State? {
        swap(nil)
    }

    /// Keeps `state` in the place of the one that another thread may have left.
    func give(_ state: State) {
        // Frames hold their state: without `finish` the two would keep each other.
        swap(Idle(state: state))?.finish()
    }

    private func swap(_ new: Idle?) -> State? {
        idle.withLock { slot in
            let old = slot
            slot = new
            return old
        }?.state
    }

    deinit {
        take()?.finish()
    }
}
