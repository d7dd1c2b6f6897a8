internal import Dispatch
internal import LarderSQLite

/// Copies a store that no process writes: into the place of one that is missing, or for such a use later.
struct StoreCopy {
    /// The path of the copy.
    let path: String
    /// A Boolean value that indicates whether the copy has to survive a loss of power.
    let syncs: Bool
    /// Called for each file that was copied.
    let finish: (String) throws -> Void

    /// The ending of a copy until it is complete.
    static let suffix = ".unfinished"

    private var unfinishedPath: String { path + Self.suffix }

    /// Makes a file with `make`, copies the value files that it names, and gives it its name.
    ///
    /// The name comes last, so a process that dies leaves no half of a store. What it has copied is copied again.
    ///
    /// - Parameters:
    ///   - source: The path of the store, whose value files are copied.
    ///   - make: Makes a file at a path, and returns the names of its value files.
    ///   - check: Throws if what was copied is of no use.
    func make(from source: String, _ make: (String) throws -> [String], check: () throws -> Void = {}) throws {
        let (old, new) = (ValueFiles.folderToRead(of: source), ValueFiles.folder(of: path))
        if old == new {
            throw StoreError(.storageUnavailable, "\"\(source)\" and \"\(path)\" have one folder of values.")
        }
        var copied: [String] = []
        do {
            try deleteUnfinished()
            for name in try make(unfinishedPath) where FileName.isValid(name) {
                // Who reads the entry of one that is missing finds nothing.
                guard try FileSystem.isThere(old + "/" + name) else { continue }
                try FileSystem.makeFolders(new)
                guard try FileSystem.status(new)?.isFolder == true else {
                    throw StoreError(.storageUnavailable, "\"\(new)\" is no folder. Delete it.")
                }
                try FileSystem.delete(new + "/" + name)
                try copy(old + "/" + name, to: new + "/" + name)
                copied.append(new + "/" + name)
            }
            try check()
            if !copied.isEmpty {
                try finish(new)
                try FileSystem.sync(new)
            }
            try finish(unfinishedPath)
            try FileSystem.sync(unfinishedPath)
            // They belong to a file that was deleted.
            for log in ["-wal", "-shm"] { try FileSystem.delete(path + log) }
            guard try FileSystem.rename(unfinishedPath, to: path) else { throw SQLiteError.moved }
            try FileSystem.sync(FileSystem.folder(of: path))
        } catch {
            for file in copied { try FileSystem.delete(file) }
            FileSystem.deleteEmptyFolder(new)
            try deleteUnfinished()
            throw error
        }
    }

    private func deleteUnfinished() throws(FileError) {
        for part in ["", "-journal"] { try FileSystem.delete(unfinishedPath + part) }
    }

    /// Copies a file, as a clone where the file system makes one.
    func copy(_ old: String, to new: String) throws {
        let file = try FileSystem.source(old)
        _ = try FileSystem.copy(file, to: new, syncs: syncs) {
            if try FileSystem.freeSpace(FileSystem.folder(of: path)) < file.size { throw StoreError.full }
        }
        try finish(new)
    }
}

extension StoreFile {
    /// Puts a copy of the store that the options name at the path if nothing is there, and returns what came of it.
    ///
    /// Called while the lock file is held.
    func prime() throws -> StoreEvent? {
        guard let source = options.primingPath, try FileSystem.status(path) == nil else { return nil }
        let copy = StoreCopy(path: path, syncs: options.durability == .powerLoss) { try options.protect?([$0]) }
        do {
            try copy.make(from: source) { unfinished in
                if try !FileSystem.isThere(source) { throw refusal("is missing.", source) }
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
    /// Everyone may read its files, as those of an app's bundle. A suspension waits for it.
    package func bake(to target: String) throws(StoreError) {
        if isClosed { throw .closed }
        try requireNoBody()
        writer.ownConnections.enter()
        defer { writer.ownConnections.leave() }
        try writer.requireResumed()
        let isDone: Bool? = try StoreError.translating { () throws -> Bool? in
            try FileSystem.makeFolders(FileSystem.folder(of: target))
            let folder = try FileSystem.resolved(FileSystem.folder(of: target)) ?? FileSystem.folder(of: target)
            let target = folder + "/" + FileSystem.name(of: target)
            let deadline = Deadline(in: writer.busyTimeout)
            return try LockFile(path: target + ".lock").withLock(until: deadline, deletes: true) {
                // The upkeep of this store may commit in the meantime.
                try bakeOnce(to: target, isLast: false) || bakeOnce(to: target, isLast: false)
                    || bakeOnce(to: target, isLast: true)
            }
        }
        if isDone == nil { throw StoreError(.busy, "Another process writes \"\(target)\". Try again.") }
    }

    /// Returns false if something was written to the store in the meantime, which is an error at the last attempt.
    private func bakeOnce(to target: String, isLast: Bool) throws -> Bool {
        guard let source = writer.database.file else {
            throw StoreError(.storageUnavailable, "A store in memory cannot be copied.")
        }
        for file in [target, ValueFiles.folder(of: target)] where try FileSystem.status(file) != nil {
            throw StoreError(.storageUnavailable, "\"\(file)\" is there already. Delete it, or name another file.")
        }
        struct Changed: Error {}
        let copy = StoreCopy(path: target, syncs: true) { try FileSystem.makeReadable($0) }
        var reader = try source.file.openReader(of: source, asNewest: false)
        let version = try reader.dataVersion()
        do {
            try copy.make(from: source.path) { unfinished in
                try FileSystem.makeFile(unfinished)
                try reader.copy(into: unfinished)
                var copy = try Connection.open(.file(unfinished), .init(role: .writer, busyMilliseconds: 0))
                try copy.forgoJournal()
                try Schema.migrate(&copy)
                try copy.execute(SQL.cleaning)
                return try copy.list(.valueFiles) { $0.text(0) }
            } check: {
                if try reader.dataVersion() != version || !source.isInPlace() { throw Changed() }
            }
            return true
        } catch {
            // A file that was displaced in the meantime may be gone, or have other bytes.
            let isChanged = try error is Changed || reader.dataVersion() != version
            if isChanged && !isLast { return false }
            if error is Changed { throw StoreError(.busy, "The store was written to while it was copied. Try again.") }
            throw error
        }
    }
}
