/// One run of a generator, unlike every other in this process.
package struct FlightID: Hashable, Sendable {
    let number: UInt64
}

/// One call that waits for values that are being made.
package struct FlightCallerID: Hashable, Sendable {
    let number: Int

    package init(_ number: Int) {
        self.number = number
    }
}

/// What a caller does with its thread while it waits.
package enum FlightCallerManner: Hashable, Sendable {
    /// It gives the thread back.
    case suspends
    /// It blocks a thread that no task needs.
    case blocks
    /// It is inside a task, and blocks a thread of the pool that runs tasks.
    case blocksPool
}

/// The flights that the running code is part of, outermost first.
///
/// A task-local value holds in synchronous code outside tasks as well: there it belongs to the thread.
enum FlightChain {
    @TaskLocal static var current: [FlightID] = []
}
