import LarderLocks

/// The working state of a coder, which can be used again.
protocol CBORReusableState: AnyObject {
    /// Releases the objects of the state that hold the state.
    func finish()
}

/// Keeps one state per coder from call to call, because buffer and frames are half of the cost of a small value.
///
/// The lock guards the one idle state and is held only briefly. Copies of a coder share the pool. A second thread that
/// finds it empty creates a state of its own.
final class CBORStatePool<State: CBORReusableState>: Sendable {
    /// A state that no thread works on.
    ///
    /// Safety: A thread that gives a state away doesn't use it any more, and `take` hands it to one caller. A state
    /// keeps nothing of the values it worked on. A decoder or container that was kept prevents its state from being
    /// given; an encoder's is closed, and refuses to write. A `Mutex` alone is not enough: the compiler cannot see that
    /// `encode(to:)` and `init(from:)`, which get the state, don't use it any more.
    private struct Idle: @unchecked Sendable {
        let state: State
    }

    private let idle = Mutex<Idle?>(nil)

    /// Takes the idle state, which then belongs to the caller alone.
    func take() -> State? {
        swap(nil)
    }

    /// Stores `state` in place of one that another thread may have left.
    func give(_ state: State) {
        // Frames hold their state: without `finish` the two would keep each other alive.
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
