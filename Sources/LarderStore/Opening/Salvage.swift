internal import Foundation
internal import LarderSQLite

/// Copies the rows that SQLite still reads of a damaged file to a new one, and renames the damaged one.
///
/// The copy is complete and on the disk before the damaged file is renamed. The next opening ends an exchange that was
/// interrupted. Called while the lock file is held.
struct Salvage {
    let file: StoreFile
    let deadline: Deadline

    private var copyPath: String { file.path + ".salvaged" }
    private var keptPath: String { file.path + ".damaged" }
    private static let logs = ["-wal", "-shm"]

    /// Replaces the file.
    ///
    /// - Parameter isReadable: A Boolean value that indicates whether its rows are copied.
    func run(isReadable: Bool = true) throws -> SalvageReport {
        let folder = FileSystem.folder(of: file.path)
        if try FileSystem.freeSpace(folder) < FileSystem.status(file.path)?.size ?? 0 { throw StoreError.full }
        let head = try FileHead(path: file.path)
        if head.hasSQLiteHeader && !head.hasKnownJournal { try Connection.declareLog(inFileAt: file.path) }
        var source = try DamagedFile(file, deadline)
        var rows = SalvagedRows()
        do {
            var copy = try makeCopy()
            if isReadable, var readable = source.connection.take() {
                try rows.copy(from: &readable, to: &copy)
                source.connection = consume readable
            }
            _ = consume copy
            try FileSystem.sync(copyPath)
            try FileSystem.sync(folder)
        } catch {
            try FileSystem.delete(copyPath)
            throw error
        }
        for log in Self.logs { try FileSystem.delete(keptPath + log) }
        try moveDamaged()
        source.commitMark()
        try moveCopy()
        return SalvageReport(kept: rows.kept, lost: rows.lost, path: keptPath)
    }

    func finish() throws {
        guard try FileSystem.status(copyPath) != nil else { return }
        if try FileSystem.status(file.path) != nil { return try FileSystem.delete(copyPath) }
        try moveDamaged()
        try moveCopy()
    }

    private func makeCopy() throws -> Connection {
        try FileSystem.delete(copyPath)
        try FileSystem.makeFile(copyPath)
        var copy = try Connection.open(.file(copyPath), .init(role: .writer, busyMilliseconds: 0))
        try copy.forgoJournal()
        guard try copy.claimEmptyDatabase(applicationID: Schema.applicationID) else { throw SQLiteError.moved }
        try Schema.migrate(&copy)
        return copy
    }

    /// Renames the damaged file and its log.
    private func moveDamaged() throws(FileError) {
        for part in [""] + Self.logs { _ = try FileSystem.rename(file.path + part, to: keptPath + part) }
        // Else the log could come back beside the copy after a loss of power.
        try FileSystem.sync(FileSystem.folder(of: file.path))
    }

    private func moveCopy() throws(FileError) {
        _ = try FileSystem.rename(copyPath, to: file.path)
        try FileSystem.sync(FileSystem.folder(of: file.path))
    }
}

/// A damaged file to which no other connection can write as long as this value lives.
private struct DamagedFile: ~Copyable {
    /// Nil if SQLite finds no database in the file.
    var connection: Connection?
    /// Holds the lock of a writer if no transaction can begin.
    private var lock: WritingLock?

    init(_ file: StoreFile, _ deadline: Deadline) throws {
        do throws(SQLiteError) {
            connection = try file.connect(.writer, deadline, readsCutFiles: true)
            try connection?.beginWriting()
            return
        } catch {
            if !error.isCorruption { throw error }
        }
        lock = try WritingLock(path: file.path)
        while try lock?.lock() == false { try deadline.pause() }
    }

    /// Commits, so that other processes look at the path and find another file there.
    mutating func commitMark() {
        guard connection?.isInAutocommit == false else { return }
        do {
            let version = try connection?.userVersion() ?? 0
            try connection?.setUserVersion(version)
            try connection?.finishWriting()
        } catch {}
    }
}
