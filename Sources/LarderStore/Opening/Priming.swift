internal import Dispatch
internal import LarderSQLite

/// Copies a store that no process writes: into the place of one that is missing, or for such a use later.
struct StoreCopy {
    /// The path of the copy.
    let path: String
    /// A Boolean value that indicates whether the copy has to survive a loss of power.
    let syncs: Bool

    /// The copy until it is complete.
    private var unfinishedPath: String { path + ".unfinished" }

    /// Makes a file with `make`, copies the value files that it names, and gives it its name.
    ///
    /// The name comes last, so a process that dies leaves no half of a store. What it has copied is copied again.
    ///
    /// - Parameters:
    ///   - source: The path of the store, whose value files are copied.
    ///   - make: Makes a file at a path, and returns the names of its value files.
    ///   - check: Throws if what was copied is of no use.
    func make(from source: String, _ make: (String) throws -> [String], check: () throws -> Void = {}) throws {
        do {
            for part in ["", "-journal"] { try FileSystem.delete(unfinishedPath + part) }
            try copyFiles(named: make(unfinishedPath), from: source)
            try check()
            try FileSystem.sync(unfinishedPath)
            // They belong to a file that was deleted.
            for log in ["-wal", "-shm"] { try FileSystem.delete(path + log) }
            _ = try FileSystem.rename(unfinishedPath, to: path)
            try FileSystem.sync(FileSystem.folder(of: path))
        } catch {
            for part in ["", "-journal"] { try FileSystem.delete(unfinishedPath + part) }
            throw error
        }
    }

    /// Copies value files; one that is missing is a miss for who reads its entry.
    private func copyFiles(named names: [String], from source: String) throws {
        let (old, new) = (ValueFiles.folderToRead(of: source), ValueFiles.folder(of: path))
        for name in names where FileName.isValid(name) {
            guard try FileSystem.status(old + "/" + name)?.isFile == true else { continue }
            try FileSystem.makeFolders(new)
            try FileSystem.delete(new + "/" + name)
            try copy(old + "/" + name, to: new + "/" + name)
        }
        if try FileSystem.status(new) != nil { try FileSystem.sync(new) }
    }

    /// Copies a file, as a clone where the file system makes one.
    func copy(_ old: String, to new: String) throws {
        let file = try FileSystem.source(old)
        _ = try FileSystem.copy(file, to: new, syncs: syncs) {
            if try FileSystem.freeSpace(FileSystem.folder(of: path)) < file.size { throw StoreError.full }
        }
    }
}

extension StoreFile {
    /// Puts a copy of the store that the options name at the path if nothing is there, and returns what came of it.
    ///
    /// Called while the lock file is held.
    func prime() throws -> StoreEvent? {
        guard let source = options.primingPath, try FileSystem.status(path) == nil else { return nil }
        let copy = StoreCopy(path: path, syncs: options.durability == .powerLoss)
        do {
            try copy.make(from: source) { unfinished in
                if try FileSystem.status(source + "-wal")?.size ?? 0 > 32 {
                    throw refusal("has a part in its log. Make it with “larder bake”.", source)
                }
                try copy.copy(source, to: unfinished)
                if try FileHead(path: unfinished).applicationID != Schema.applicationID {
                    throw refusal("is no store.", source)
                }
                return try valueFiles(ofCopy: unfinished, of: source)
            }
            return .primed(source)
        } catch let error as SQLiteError where error.isCorruption {
            return .notPrimed(source, refusal("is damaged.", source))
        } catch {
            return .notPrimed(source, StoreError(any: error))
        }
    }

    /// Returns the names of the value files of a copy, and throws if it cannot be used.
    private func valueFiles(ofCopy path: String, of source: String) throws -> [String] {
        var connection = try Connection.open(.immutableFile(path), .init(role: .reader, busyMilliseconds: 0))
        let version = try connection.userVersion()
        if version > Schema.current { throw refusal("was written by a later release. Update the program.", source) }
        if try version < 1 || !connection.isSound() { throw refusal("is damaged.", source) }
        return try connection.list(.valueFiles) { $0.text(0) }
    }

    private func refusal(_ reason: String, _ path: String) -> StoreError {
        StoreError(.storageUnavailable, "\"\(path)\" \(reason)")
    }
}

extension Store {
    /// Writes a copy from which other stores can begin: compact, without a log, and without what tells of this store's use.
    ///
    /// A suspension waits for it.
    package func bake(to target: String) throws(StoreError) {
        if isClosed { throw .closed }
        try requireNoBody()
        writer.ownConnections.enter()
        defer { writer.ownConnections.leave() }
        try writer.requireResumed()
        try StoreError.translating {
            guard let source = writer.database.file else {
                throw StoreError(.storageUnavailable, "A store in memory cannot be copied.")
            }
            if try FileSystem.status(target) != nil {
                throw StoreError(
                    .storageUnavailable, "\"\(target)\" is there already. Delete it, or name another file.")
            }
            try FileSystem.makeFolders(FileSystem.folder(of: target))
            let folder = try FileSystem.resolved(FileSystem.folder(of: target)) ?? FileSystem.folder(of: target)
            let target = folder + "/" + FileSystem.name(of: target)
            var reader = try source.file.openReader(of: source, asNewest: false)
            let version = try reader.dataVersion()
            try StoreCopy(path: target, syncs: true).make(from: source.path) { unfinished in
                try reader.copy(into: unfinished)
                var copy = try Connection.open(.file(unfinished), .init(role: .writer, busyMilliseconds: 0))
                try copy.forgoJournal()
                try Schema.migrate(&copy)
                try copy.execute(SQL.cleaning)
                return try copy.list(.valueFiles) { $0.text(0) }
            } check: {
                if try reader.dataVersion() == version && source.isInPlace() { return }
                throw StoreError(.busy, "The store was written to while it was copied. Try again.")
            }
        }
    }
}
