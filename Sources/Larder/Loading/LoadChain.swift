internal import LarderLocks

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
