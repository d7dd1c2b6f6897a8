internal import LarderSQLite

/// A file that was moved or is damaged is opened again by the call that notices it.
extension Writer {
    /// Opens the file again if it was moved or is damaged.
    func renew(_ state: WriterState) throws(StoreError) {
        guard state.isLost else { return }
        try requireResumed()
        defer { database = state.database }
        try state.reopen()
    }

    /// Runs a read, and repeats it if the file had to be opened again.
    func retrying<R>(_ body: (Database) throws(StoreError) -> R) throws(StoreError) -> R {
        var attempts = 0
        while true {
            try requireResumed()
            let database = database
            do throws(StoreError) {
                return try body(database)
            } catch {
                attempts += 1
                guard attempts < 3, try renew(after: error, if: { $0.database === database }) else { throw error }
            }
        }
    }

    /// Opens the file again after a read that failed, and returns whether it is worth a second attempt.
    ///
    /// - Parameter isOld: Returns whether the file that was read is still the open one.
    func renew(after error: StoreError, if isOld: (WriterState) -> Bool) throws(StoreError) -> Bool {
        guard error.isAboutMove || [.corrupt, .closed].contains(error.code), !isOwned else { return false }
        try requireResumed()
        return try locked { state throws(StoreError) in
            guard let state else { throw .closed }
            if isOld(state) { state.note(error) }
            try renew(state)
            return !isOld(state)
        }
    }

    /// Salvages the file, also if the options say that damage is not repaired.
    func repair() throws(StoreError) -> SalvageReport? {
        try locked { state throws(StoreError) in
            guard let state else { throw .closed }
            if state.database.file == nil { return nil }
            if state.loss == .suspended { throw .suspended }
            state.loss = .damaged
            try renew(state)
            guard case .replaced(let salvage)? = state.events.last else { return nil }
            return salvage
        }
    }
}
