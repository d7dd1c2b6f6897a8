internal import LarderSQLite

/// The reason to open a file again.
///
/// A rollback that has failed counts as a move.
enum Loss {
    case moved, damaged
    /// The connections were closed, to be opened again after the store is resumed.
    case suspended
}

/// The file is opened again after it was moved, or exchanged for a sound one after it was damaged.
extension WriterState {
    var isLost: Bool { loss != nil }

    /// Undoes the transaction for a failure, and returns the failure.
    func fail(_ error: any Error) -> StoreError {
        rollBack()
        let error = StoreError(any: error)
        note(error)
        return error
    }

    /// Notes a failure after which the file has to be opened again.
    func note(_ error: StoreError) {
        guard let options = database.file?.file.options else { return }
        let isDamaged = error.code == .corrupt && options.recovery == .salvage
        // A rollback that has failed leaves a transaction that nothing else ends.
        let isUnusable = !isWriting && !connection.isInAutocommit
        if loss == .suspended { return }
        if isDamaged || isUnusable || error.isAboutMove { loss = isDamaged ? .damaged : .moved }
    }

    /// Opens the path again, and declares the caches that this process has opened if they are missing there.
    ///
    /// If that fails, the next call tries it again. A damaged file that cannot be exchanged is used until the next failure.
    func reopen() throws(StoreError) {
        guard let old = database.file, let loss else { return }
        let open = tiers.names
        let known =
            undeclared ?? (
                incarnations.values.filter { open.contains($0.cache.identity.name) },
                knowsLimits ? storeLimits : StoreLimits()
            )
        if !connection.isInAutocommit {
            // A transaction keeps its locks until the connection is closed.
            connection = try StoreError.translating {
                try Connection.open(.memory, .init(role: .writer, busyMilliseconds: 0))
            }
        } else if loss == .damaged {
            self.loss = nil
        }
        // The log may not have been moved yet, and would be deleted.
        if loss == .moved {
            readers?.open(nil)
            copyLog()
        }
        var next = try old.file.open(after: old, isDamaged: loss == .damaged)
        var isSameFile = loss == .suspended && undeclared == nil && next.database.file?.identity == old.identity
        if isSameFile {
            // A new file can get the number of a deleted one.
            let ids = Set(incarnations.values.map(\.id))
            let found = try StoreError.translating { try next.connection.liveIncarnations() }.values.map(\.id)
            isSameFile = ids.isEmpty || !ids.isDisjoint(with: found)
        }
        (self.loss, undeclared) = (.moved, known)
        // They may belong to the new file now.
        aftermath.files = []
        database.end()
        readers?.open(nil)
        database = next.database
        // Of the same file, memory compares what it has with the rows.
        aftermath.opened = (watch, isSameFile && aftermath.opened?.isSameFile ?? true)
        aftermath.events += next.events
        connection = next.connection
        guardian = next.guardian
        rollBack()
        (room.isFull, waits, evictions) = (false, LimitWaits(), [:])
        lookAtRoom()
        resetLog()
        if !isSameFile && !old.file.options.isReadOnly { try declareAgain() }
        (self.loss, undeclared) = (nil, nil)
        // Before, a read would not find the caches.
        readers?.open(database)
    }

    /// Closes the connections, and with them every lock, until the file is opened again.
    func suspend(at now: Int64) throws(StoreError) {
        if database.file == nil || loss == .suspended { return }
        let placeholder = try StoreError.translating {
            try Connection.open(.memory, .init(role: .writer, busyMilliseconds: 0))
        }
        flush(at: now)
        watch.pause()
        readers?.open(nil)
        closeLog()
        connection = placeholder
        rollBack()
        loss = .suspended
    }

    private func declareAgain() throws(StoreError) {
        guard let undeclared else { return }
        try StoreError.translating {
            try transaction(until: Deadline(in: busyTimeout)) { state in
                for cache in undeclared.caches where state.incarnations[cache.cache.identity.name] == nil {
                    try state.declare(cache)
                }
                if state.storeLimits == StoreLimits() { try state.setLimits(undeclared.limits) }
            }
        }
    }
}
