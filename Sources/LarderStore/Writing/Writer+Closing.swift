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
        finish(aftermath, finished, waits: true)
    }

    /// Throws `.suspended` while the store is suspended.
    func requireResumed() throws(StoreError) {
        if let refusal, refusal.code == .suspended { throw refusal }
    }

    /// Refuses new requests, runs those that wait, and closes the connections until ``resume()``.
    func suspend(at now: Int64) throws(StoreError) {
        queue.withLock { if $0.refusal == nil { $0.refusal = .suspended } }
        ownConnections.wait()
        // A closure of a migration may run, which then ends.
        migrationLock.withLock { $0 }?.release()
        var (aftermath, finished) = (Aftermath(), [Request]())
        let result = try lock.withLock { state in
            while waitingCount > 0 { finished += drain(state) }
            let result = Result { () throws(StoreError) in try state?.suspend(at: now) }
            aftermath = state?.takeAftermath() ?? aftermath
            return result
        }
        finish(aftermath, finished, waits: true)
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

    /// Reads over a connection of its own, so that it waits for no body; ``suspend(at:)`` waits for it.
    ///
    /// In memory it reads over the writer's.
    func readAlone<R>(_ body: (inout Connection) throws -> R) throws -> R {
        ownConnections.enter()
        defer { ownConnections.leave() }
        try requireResumed()
        guard let file = database.file else { return try read { try body(&$0.connection) } }
        var connection = try file.file.openReader(of: file)
        return try body(&connection)
    }
}
