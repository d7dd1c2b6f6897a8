internal import LarderSQLite

extension StoreOpener {
    /// What has to be done about the file at our path.
    private enum Trouble: Error {
        case damaged(SQLiteError)
        case newer(Int32)
    }

    /// Makes, repairs or replaces the store and opens it.
    ///
    /// The caller holds the lock file.
    func openLocked(_ loss: StoreLoss?) throws -> Opened {
        var notices: [StoreNotice] = []
        var trouble: Trouble?
        let current = try FileSystem.status(name)?.identity
        if let loss, let current, current == loss.identity {
            if let damage = loss.damage, try loss.isCertain || isDamaged(current) { trouble = .damaged(damage) }
        } else if let log = loss?.logIdentity, try FileSystem.status(location.logs[0])?.identity == log {
            // Another file was put in the old one's place, which is not what the old one's log is to be applied to.
            try setAside.moveLog()
        }
        var isSecondLook = false
        // Twice replaced and still no good: something else is wrong.
        for _ in 0..<6 {
            if let trouble { notices += try replace(trouble) }
            do {
                return Opened(database: try build(), notices: notices)
            } catch let found as Trouble {
                trouble = found
            } catch let error as SQLiteError where error.isCorruption {
                // A fault of the moment, of the disk or of the memory, does not come twice on fresh connections.
                trouble = isSecondLook ? .damaged(error) : nil
                isSecondLook.toggle()
            }
        }
        throw refusal(.corrupt, "what was made anew there is damaged again; check the volume")
    }

    private var setAside: SetAside { SetAside(location: location, vfs: settings.vfs) }

    /// Whether a look at every page finds the damage that was met; what cannot be read for another cause is thrown.
    private func isDamaged(_ identity: FileIdentity) throws(SQLiteError) -> Bool {
        do {
            var connection = try connect(.writer, to: identity)
            return try !connection.isSound()
        } catch  where error.isCorruption {
            return true
        }
    }

    /// Opens the file and gives it what it lacks.
    private func build() throws -> Database {
        if try FileSystem.status(name) == nil {
            try setAside.moveRests()
            _ = try FileSystem.makeFile(name)
        }
        guard let status = try FileSystem.status(name) else { throw SQLiteError.moved }
        let head = try head()
        // SQLite takes a file of one byte for an empty one; whoever wrote that byte may want it. And it deletes the log
        // beside an empty one, which is all that is left of the store whose file was cut.
        if try head.size == 0 && (status.size > 0 || hasRests()) {
            throw SQLiteError(code: .notADatabase, message: "file is not a database")
        }
        try refuseForeign(head)
        var writer = try connect(.writer, to: status.identity)
        let mark = try writer.applicationID()
        if mark != Schema.applicationID {
            // A new file, one that somebody made for us, or our own unfinished one; unless another program began to use
            // it since we looked.
            guard try writer.claimEmptyDatabase(applicationID: Schema.applicationID) else { throw foreign }
        }
        let version = try writer.userVersion()
        if version == 0 { try writer.giveForm() }
        guard try writer.enableLog() else { throw noSharedMemory }
        if version > Schema.current { throw Trouble.newer(version) }
        try Schema.migrate(&writer)
        try Schema.check(&writer)
        return try database(writer, status.identity)
    }

    /// Whether there is something beside the database that belongs to a store with contents.
    private func hasRests() throws -> Bool {
        try hasLog() || FileSystem.status(location.files) != nil
    }

    /// Sets the store aside, if the policy allows it.
    private func replace(_ trouble: Trouble) throws -> [StoreNotice] {
        let reason: String
        switch trouble {
        case .damaged(let error):
            guard settings.recovery == .recreate else {
                throw CacheError("cannot open \(name), and `recovery` says not to replace it", error)
            }
            reason = "it was damaged (\(error.message))"
        case .newer(let version):
            guard settings.newerSchema == .recreate else {
                throw refusal(
                    .newerSchema,
                    "a newer release of the library wrote it (schema \(version), this one knows \(Schema.current)); "
                        + "update the library, or set `newerSchema` to have it replaced")
            }
            reason = "a newer release of the library wrote it (schema \(version))"
        }
        // A file that never was ours is never deleted, so whether it was is decided by the mark at its place.
        let isOurs = try head().applicationID == Schema.applicationID
        let (target, leftOver) = try setAside(isOurs: isOurs)
        let done = StoreNotice.setAside(path: target, reason: reason)
        return leftOver.map { [done, .backgroundFailure($0)] } ?? [done]
    }
}
