internal import LarderLocks

/// Gets the error of a load that goes on without callers, and the places of its keys in the call that has begun it.
typealias LoadFailure = @Sendable (any Error, [Int]) -> Void

/// A caller of a load.
struct LoadTicket: Sendable {
    let load: Int
    let caller: Int
    let places: [LoadPlace]
}

/// Where a key is in a call, and among the keys of a load.
struct LoadPlace: Sendable {
    let inCall: Int
    let inLoad: Int
}

/// A load that stands at a key, which has a place in it.
struct LoadStand {
    let load: Int
    let place: Int
}

/// What a load has yet to store, and the end of what its callers have.
struct LoadStoring: Sendable {
    let bytes: Int
    let end: Int64
}

/// What a load has for its callers, of whatever type.
protocol LoadOutputs: AnyObject, Sendable {
    func hasOutput(at place: Int) -> Bool
}

final class Outputs<Output: Sendable>: LoadOutputs {
    let values: [Output?]

    init(values: [Output?]) { self.values = values }

    func hasOutput(at place: Int) -> Bool { values[place] != nil }
}

/// The loads that the running code is a part of.
enum LoadChain {
    /// The numbers of the loads, the outermost first; in synchronous code outside tasks the value belongs to the thread.
    @TaskLocal static var current: [Int] = []

    private static let lastNumber = Atomic(0)

    /// A number for a load or a caller that no other one in the process has.
    static func newNumber() -> Int { lastNumber.add(1, ordering: .relaxed).newValue }

    static func entering<R>(_ load: Int, _ body: () throws -> R) rethrows -> R {
        try $current.withValue(current + [load], operation: body)
    }
}
