internal import LarderSQLite

/// The deletion of a store that no process has open.
extension StoreFile {
    /// Deletes the file and all that belongs to it.
    ///
    /// Throws `.busy` if a connection of any process has it open, and `.foreignFile` if it is no store.
    func delete() throws(StoreError) {
        let deadline = Deadline(in: options.busyTimeout)
        let isDeleted = try StoreError.translating { () throws -> Bool? in
            guard try FileSystem.resolved(FileSystem.folder(of: path)) != nil else { return true }
            try refuseBeforeLocking()
            return try lockFile.withLock(until: deadline) {
                if let status = try FileSystem.status(path) { try deleteAlone(status) } else { try deleteParts() }
                return true
            }
        }
        if isDeleted == nil { throw .busy }
    }

    /// Deletes all files while a connection keeps every other one out.
    private func deleteAlone(_ status: FileSystem.Status) throws {
        try requireFile(status)
        do { try requireOwnership() } catch let error as SQLiteError where error.isCorruption {}
        var connection = try Connection.open(.file(path))
        if try !connection.lockAlone() {
            throw StoreError(.busy, "\"\(path)\" is open in a program. Close it there first.")
        }
        try deleteParts()
    }

    private func deleteParts() throws {
        let files = ValueFiles.folder(of: path)
        if try FileSystem.status(files)?.isFolder == true {
            for name in try FileSystem.names(in: files) { try FileSystem.delete(files + "/" + name) }
            FileSystem.deleteEmptyFolder(files)
        }
        // The main file goes before its log, which is nothing without it.
        let kept = ["", ".salvaged", ".damaged", ".replaced"].flatMap { part in ["", "-wal", "-shm"].map { part + $0 } }
        for part in kept + [".ballast", ".lock"] { try FileSystem.delete(path + part) }
        try FileSystem.sync(FileSystem.folder(of: path))
    }
}
