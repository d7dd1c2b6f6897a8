/// What follows transactions once the writer's lock is released.
struct Aftermath {
    /// The files that no row names any more, to be discarded.
    var files: [String] = []
    /// The rows that were removed by age, limit or tag, by the names of their caches.
    var removedRows: [ExactName: [RemovedRow]] = [:]
    var events: [StoreEvent] = []
}

extension Writer {
    /// Does what follows transactions.
    ///
    /// - Parameter waits: A Boolean value that indicates whether this thread may wait for files to be deleted.
    func finish(_ aftermath: Aftermath, waits: Bool) {
        if !aftermath.files.isEmpty, let files = database.files {
            if waits { files.discard(aftermath.files) } else { files.discardLater(aftermath.files) }
        }
        for (name, rows) in aftermath.removedRows { for memory in memories[name] { memory.rowsWereRemoved(rows) } }
        for event in aftermath.events { report(event) }
    }
}
