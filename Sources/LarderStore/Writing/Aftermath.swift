/// What follows transactions once the writer's lock is released.
struct Aftermath {
    /// The files that no row names any more, to be discarded.
    var files: [String] = []
    /// The rows that were removed by age, limit or tag, by their caches.
    var removedRows: [CacheIdentity: [RemovedRow]] = [:]
    var events: [StoreEvent] = []
    /// A Boolean value that indicates whether the file was opened again.
    var isReplaced = false
    /// Objects whose end may run code of the program.
    var released: [Any] = []
}

extension Writer {
    /// Does what follows transactions.
    ///
    /// - Parameter waits: A Boolean value that indicates whether this thread may wait for files to be deleted.
    func finish(_ aftermath: Aftermath, waits: Bool) {
        if aftermath.isReplaced { for memory in memories.all.values.joined() { memory.storeWasReplaced() } }
        for (cache, rows) in aftermath.removedRows { for memory in memories[cache] { memory.rowsWereRemoved(rows) } }
        for (cache, rows) in aftermath.removedRows { report(.removed(rows, cache: cache.name.text)) }
        for event in aftermath.events { report(event) }
        if !aftermath.files.isEmpty, let files = database.files {
            if waits { files.discard(aftermath.files) } else { files.discardLater(aftermath.files) }
        }
    }
}
