internal import LarderSQLite

/// Makes a database in memory: one connection that reads and writes, no log, no files.
struct MemoryOpener: StoreOpening {
    let settings: OpeningSettings

    var name: String { "the store in memory" }
    var isReadOnly: Bool { false }
    var replacesDamaged: Bool { false }

    func open(after loss: StoreLoss?) throws(CacheError) -> Opened {
        try CacheError.translating("cannot open \(name)") {
            try StoreOpener.checkLibrary(settings.libraryVersion)
            var connection = try Connection.open(.memory, settings.options(.writer))
            _ = try connection.claimEmptyDatabase(applicationID: Schema.applicationID)
            try Schema.migrate(&connection)
            return Opened(database: Database(memory: connection))
        }
    }
}
