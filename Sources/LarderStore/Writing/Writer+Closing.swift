internal import Dispatch
internal import LarderSQLite
internal import Synchronization

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
        try lock.withLock { state throws(StoreError) in
            while waitingCount > 0 { finished += drain(state) }
            let result = Result { () throws(StoreError) in try state?.suspend(at: now) }
            aftermath = state?.takeAftermath() ?? aftermath
            try result.get()
        }
        finish(aftermath, waits: true)
        for request in finished { request.resume() }
    }

    /// Takes requests again; the next one opens the file.
    func resume() {
        // Memory has not seen all commits of other stores.
        database.watch.end()
        queue.withLock { if $0.refusal?.code == .suspended { $0.refusal = nil } }
    }

    /// Runs a read over a connection of its own, which ``suspend(at:)`` waits for.
    func withOwnConnection<R>(_ body: () throws -> R) throws(StoreError) -> R {
        ownConnections.enter()
        defer { ownConnections.leave() }
        try requireResumed()
        return try StoreError.translating(body)
    }
}
