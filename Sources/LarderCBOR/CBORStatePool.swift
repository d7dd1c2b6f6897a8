import LarderLocks

/// The working state of a coder, which can be used again.
protocol CBORReusableState: AnyObject {
    /// Releases the objects of the state that hold the state.
    func finish()
}

/// Keeps one state per coder from call to call, because buffer and frames are half of the cost of a small value.
///
/// No thread waits for another: one that finds the pool in use or empty creates a state of its own. Copies of a coder share
/// the pool.
///
/// Safety: `idle` is used by the thread alone that has set `isInUse`. A thread that gives a state away doesn't use it any
/// more, and `take` hands it to one caller. A state keeps nothing of the values it worked on. A decoder or container that was
/// kept prevents its state from being given; an encoder's is closed, and refuses to write.
final class CBORStatePool<State: CBORReusableState>: @unchecked Sendable {
    /// The state that no coder works on.
    private var idle: State?
    private let isInUse = Atomic(false)

    /// Takes the idle state, which then belongs to the caller alone.
    func take() -> State? {
        if isInUse.exchange(true, ordering: .acquiring) { return nil }
        defer { isInUse.store(false, ordering: .releasing) }
        return idle.take()
    }

    /// Stores `state` in place of one that another thread may have left.
    func give(_ state: State) {
        var dropped: State? = state
        if !isInUse.exchange(true, ordering: .acquiring) {
            swap(&idle, &dropped)
            isInUse.store(false, ordering: .releasing)
        }
        // Frames hold their state: without `finish` the two would keep each other alive.
        dropped?.finish()
    }

    deinit {
        idle?.finish()
    }
}
