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
            let hasLock = try FileSystem.status(lockFile.path) != nil
            if try !hasLock && FileSystem.status(path) == nil { return true }
            try refuseBeforeLocking()
            if !hasLock { try requireMark() }
            return try lockFile.withLock(until: deadline) {
                if let status = try FileSystem.status(path) {
                    try deleteAlone(status)
                } else if try lockFile.isMarked || FileSystem.status(path + ".salvaged") != nil {
                    try deleteParts()
                }
                return true
            }
        }
        if isDeleted == nil { throw .busy }
    }

    /// Deletes all files while a connection keeps every other one out.
    private func deleteAlone(_ status: FileSystem.Status) throws {
        try requireFile(status)
        try requireMark()
        var connection = try Connection.open(.file(path))
        if try !connection.lockAlone() {
            throw StoreError(.busy, "\"\(path)\" is open in a program. Close it there first.")
        }
        try deleteParts()
    }

    /// Throws unless the file is marked as a store, itself or by its lock file: an empty one may be another program's.
    private func requireMark() throws {
        if try !lockFile.isMarked && FileHead(path: path).applicationID != Schema.applicationID { throw foreign }
    }

    private func deleteParts() throws {
        // The main file goes first: what is left without it is nothing to a store.
        for part in ["", ".salvaged", ".damaged", ".replaced"] {
            for log in ["", "-wal", "-shm"] { try FileSystem.delete(path + part + log) }
        }
        let files = ValueFiles.folder(of: path)
        if try FileSystem.status(files)?.isFolder == true {
            for name in try FileSystem.names(in: files) where try FileSystem.status(files + "/" + name)?.isFile == true
            {
                try FileSystem.delete(files + "/" + name)
            }
            FileSystem.deleteEmptyFolder(files)
        }
        for part in [".ballast", LockFile.migrationSuffix, LockFile.sharingSuffix, ".lock"] {
            try FileSystem.delete(path + part)
        }
        try FileSystem.sync(FileSystem.folder(of: path))
    }
}
