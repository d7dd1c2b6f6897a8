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
    func retrying<R>(_ body: () throws(StoreError) -> R) throws(StoreError) -> R {
        var attempts = 0
        while true {
            let openings = readers?.openingCount
            do throws(StoreError) {
                return try body()
            } catch {
                attempts += 1
                guard attempts < 3, try renew(after: error, openings) else { throw error }
            }
        }
    }

    /// Opens the file again after a read that failed, and returns whether it is worth a second attempt.
    ///
    /// - Parameter openings: The number of openings before the read.
    private func renew(after error: StoreError, _ openings: Int?) throws(StoreError) -> Bool {
        guard error.isAboutMove || error.code == .corrupt, !isOwned else { return false }
        try requireResumed()
        return try locked { state throws(StoreError) in
            guard let state else { throw .closed }
            if readers?.openingCount == openings { state.note(error) }
            try renew(state)
            return readers?.openingCount != openings
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
            guard case .replaced(let salvage)? = state.aftermath.events.last else { return nil }
            return salvage
        }
    }
}
