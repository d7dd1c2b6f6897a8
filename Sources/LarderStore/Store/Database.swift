internal import LarderSQLite

/// The file of a database as it was opened.
struct OpenedFile: Sendable {
    let file: StoreFile
    let identity: FileIdentity
    /// The identities of its log and of the log's index.
    let logs: [FileIdentity]
    /// The status of a file that was opened without a log, which must not change; nil for one with a log.
    var state: FileSystem.Status?

    var path: String { file.path }
    var ballast: Ballast { Ballast(path: path + ".ballast") }

    /// Returns whether the file is still at its path, and unchanged if it was opened without a log.
    func isInPlace() throws(FileError) -> Bool {
        guard let now = try FileSystem.status(path), now.identity == identity else { return false }
        guard let state else { return true }
        guard now.size == state.size, now.modifiedAt == state.modifiedAt else { return false }
        return try !file.hasLog()
    }
}

/// The objects that belong to one opening of the file.
///
/// They are replaced when the file was moved or salvaged.
final class Database: Sendable {
    /// Nil in memory.
    let file: OpenedFile?
    /// Sees the index of the log; nil if there is none.
    let counter: CommitCounter?
    /// Notices the commits of other stores.
    let watch: CommitWatch
    /// The payloads that are too large for a row; nil in memory.
    let files: ValueFiles?

    /// - Parameter connection: A connection that has read, so that it has the log's index open.
    init(_ connection: borrowing Connection, _ file: OpenedFile?) {
        self.file = file
        // A file without a log has no index either, and none may be created.
        let isAlone = file?.state != nil
        counter = isAlone ? nil : CommitCounter(of: connection)
        watch = CommitWatch(counter, isBlind: counter == nil && file != nil)
        files = file.map { ValueFiles($0) }
    }

    /// Throws if another file, or none, is at the path.
    func requirePlace() throws(SQLiteError) {
        do throws(FileError) {
            if try file?.isInPlace() ?? true { return }
        } catch {
            throw SQLiteError(code: .cannotOpen, message: "\(error)", systemCode: error.number)
        }
        throw .moved
    }

    /// Ends the watch, and deletes the files that wait to be overwritten.
    func end() {
        watch.end()
        files?.emptyPool(isLast: true)
    }
}

/// A file that was opened: the connections that write.
struct Opening: ~Copyable {
    var connection: Connection
    /// Nil in memory and for a store that is only read.
    var guardian: Connection?
    let database: Database
    /// The repairs of the opening.
    var events: [StoreEvent] = []
}
