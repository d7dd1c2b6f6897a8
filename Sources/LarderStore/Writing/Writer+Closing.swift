internal import Dispatch
internal import LarderLocks
internal import LarderSQLite

/// The end of a store, and its suspension: the connections are closed, and requests are refused.
extension Writer {
    /// Refuses new requests, runs a batch of those that wait, and closes the connections.
    func close(at now: Int64) throws(StoreError) {
        try lock.refuseOwner()
        queue.withLock { $0.refusal = .closed }
        var aftermath = Aftermath()
        let finished = try lock.withLock { state in
            let drained = drain(state)
            state?.close(at: now)
            aftermath = state?.takeAftermath() ?? aftermath
            state = nil
            return drained + drain(nil)
        }
        finish(aftermath, waits: true)
        for request in finished { request.resume() }
    }

    /// Throws `.suspended` while the store is suspended.
    func requireResumed() throws(StoreError) {
        if let refusal, refusal.code == .suspended { throw refusal }
    }

    /// Refuses new requests, runs those that wait, and closes the connections until ``resume()``.
    func suspend(at now: Int64) throws(StoreError) {
        try lock.refuseOwner()
        if isClosed { throw .closed }
        queue.withLock { if $0.refusal == nil { $0.refusal = .suspended } }
        ownConnections.wait()
        var (aftermath, finished) = (Aftermath(), [Request]())
        let result = try lock.withLock { state in
            while waitingCount > 0 { finished += drain(state) }
            let result = Result { () throws(StoreError) in try state?.suspend(at: now) }
            aftermath = state?.takeAftermath() ?? aftermath
            return result
        }
        finish(aftermath, waits: true)
        for request in finished { request.resume() }
        try result.get()
    }

    /// Takes requests again, of which the next one opens the file, and returns whether the store was suspended.
    func resume() -> Bool {
        if !isSuspended { return false }
        // Memory has not seen all commits of other stores.
        if database.file != nil { database.watch.end() }
        queue.withLock { if $0.refusal?.code == .suspended { $0.refusal = nil } }
        return true
    }

    /// Runs a read over a connection of its own, which ``suspend(at:)`` waits for.
    func withOwnConnection<R>(_ body: () throws -> R) throws -> R {
        ownConnections.enter()
        defer { ownConnections.leave() }
        try requireResumed()
        return try body()
    }
}
