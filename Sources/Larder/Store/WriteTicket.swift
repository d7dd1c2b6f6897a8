package import LarderSQLite
internal import Synchronization

/// A write with what comes of it.
@usableFromInline
package struct WriteTicket<Result: Sendable>: Sendable {
    let write: QueuedWrite
    private let kept: @Sendable () -> Result?

    /// - Parameters:
    ///   - pages: How many pages it adds at most; `.max` where nobody knows.
    ///   - perform: Does it, inside a transaction; may be called again, in another one.
    ///   - apply: Makes it known in memory once it is committed; gives back what it displaced there.
    package init(
        _ scope: WriteScope, isCompound: Bool = false, isAlone: Bool = false, isWriting: Bool = true,
        adding pages: Int = 0,
        perform: @escaping @Sendable (inout Connection, WriteContext) throws(WriteFailure) -> Result,
        apply: @escaping @Sendable (Result) -> (any Sendable)? = { _ in nil }
    ) {
        let kept = KeptResult<Result>()
        self.kept = { kept.result }
        write = QueuedWrite(
            scope, isCompound: isCompound, isAlone: isAlone, isWriting: isWriting, adding: pages,
            ClosureWork(
                perform: { (connection, context) throws(WriteFailure) in
                    kept.keep(try perform(&connection, context))
                },
                apply: { kept.result.flatMap(apply) }))
    }

    /// A ticket for work that adds something.
    ///
    /// - Parameter result: What `work` has come to, the last time that it was done.
    init(
        _ scope: WriteScope, adding pages: Int, _ work: any WriteWork, result: @escaping @Sendable () -> Result?
    ) {
        kept = result
        write = QueuedWrite(scope, adding: pages, work)
    }

    /// What was committed; nil if nothing was.
    package var result: Result? { write.isGood ? kept() : nil }

    /// How it ended; releases what it displaced.
    package func outcome() throws(CacheError) -> Result {
        try write.end()
        guard let result = kept() else { preconditionFailure("A write was acknowledged that was never done.") }
        return result
    }
}

/// What two closures do.
private final class ClosureWork: WriteWork {
    private let performing: @Sendable (inout Connection, WriteContext) throws(WriteFailure) -> Void
    private let applying: @Sendable () -> (any Sendable)?

    init(
        perform: @escaping @Sendable (inout Connection, WriteContext) throws(WriteFailure) -> Void,
        apply: @escaping @Sendable () -> (any Sendable)?
    ) {
        performing = perform
        applying = apply
    }

    func perform(_ connection: inout Connection, _ context: WriteContext) throws(WriteFailure) {
        try performing(&connection, context)
    }

    func apply() -> (any Sendable)? { applying() }
}

/// What a write has come to, the last time that it was done.
private final class KeptResult<Result: Sendable>: Sendable {
    private let state = Mutex<Result?>(nil)

    func keep(_ result: Result) { state.withLock { $0 = result } }

    var result: Result? { state.withLock { $0 } }
}
