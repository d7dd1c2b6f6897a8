internal import LarderSQLite

extension StoreOpener {
    /// How many connections read at once; a further reader waits.
    private static let readerCount = 4

    /// How long an idle reader may pin the log.
    private static let snapshotLimit: Duration = .seconds(1)

    /// Opens a connection to the file that has `identity`, and to no other that took its place.
    func connect(_ role: Connection.Role, to identity: FileIdentity) throws(SQLiteError) -> Connection {
        let place = place(of: identity)
        var connection: Connection
        do {
            connection = try Connection.open(.file(name, vfs: settings.vfs), settings.options(role))
        } catch {
            guard place.isUnmoved() else { throw .moved }
            throw error
        }
        guard place.isUnmoved() else { throw .moved }
        // SQLite opens what it may not write for reading, without a word.
        if role != .reader, connection.isReadOnly() {
            throw SQLiteError(code: .readOnly, message: "the file could be opened only for reading")
        }
        return connection
    }

    /// The database behind an open writer.
    func database(_ writer: consuming sending Connection, _ identity: FileIdentity) throws -> Database {
        let counter = CommitCounter(of: writer)
        return Database(
            identity: identity, logIdentity: try FileSystem.status(location.logs[0])?.identity, writer: writer,
            readers: readers(counter, identity) { () throws(SQLiteError) in try connect(.reader, to: identity) },
            counter: counter,
            blobs: BlobFolder(path: location.files, syncs: settings.durability == .powerLoss),
            openGuardian: { () throws(SQLiteError) in try connect(.guardian, to: identity) },
            isUnmoved: place(of: identity).isUnmoved)
    }

    func readers(
        _ counter: CommitCounter?, _ identity: FileIdentity, open: @escaping ReaderPool.Opener
    ) -> ReaderPool {
        let place = place(of: identity)
        let timekeeper = timekeeper
        return ReaderPool(
            count: Self.readerCount, counter: counter, open: open,
            // Somebody committed. If that was the one who replaced the file, what we would read is over.
            willRenew: { () throws(SQLiteError) in guard place.isUnmoved() else { throw .moved } },
            scheduleLettingGo: { link in
                _ = timekeeper.wake(Self.snapshotLimit) { link.letGo() }
            })
    }

    func place(of identity: FileIdentity) -> Place {
        Place(path: name, identity: identity)
    }

    /// A file at its path.
    struct Place: Sendable {
        let path: String
        let identity: FileIdentity

        /// Whether it still stands there.
        ///
        /// Never opens it.
        @Sendable func isUnmoved() -> Bool {
            do {
                return try FileSystem.status(path)?.identity == identity
            } catch {
                // That we may not look says nothing about the file, which we have open.
                return true
            }
        }
    }
}
