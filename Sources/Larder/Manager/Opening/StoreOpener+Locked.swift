internal import LarderSQLite

extension StoreOpener {
    /// What has to be done about the file at our path.
    private enum Trouble: Error {
        case damaged(SQLiteError, LogContents? = nil)
        case newer(Int32)
    }

    /// Makes, repairs or replaces the store and opens it.
    ///
    /// The caller holds the lock file.
    func openLocked(_ loss: StoreLoss?) throws -> Opened {
        var notices: [StoreNotice] = []
        var salvaged: SalvagedStore?
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
            if let trouble {
                let done = try replace(trouble, isRepair: loss?.isRepair == true)
                notices += done.notices
                salvaged = done.salvaged
            }
            do {
                if let contents = try settleLog() {
                    throw Trouble.damaged(SQLiteError(code: .corrupt, message: "the log is damaged"), contents)
                }
                return Opened(database: try build(), notices: notices, salvaged: salvaged)
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

    var setAside: SetAside { SetAside(location: location, vfs: settings.vfs) }

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
        if try FileSystem.status(name) != nil {
            try deleteSalvage()
        } else if try !finishSalvage() {
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

    /// Sets the store aside, if the policy allows it; a damaged one leaves behind what can be read of it.
    private func replace(
        _ trouble: Trouble, isRepair: Bool
    ) throws -> (notices: [StoreNotice], salvaged: SalvagedStore?) {
        let (path, reason, leftOver): (String, String, CacheError?)
        var salvaged: SalvagedStore?
        switch trouble {
        case .damaged(let error, let contents):
            guard isRepair || settings.recovery == .recreate else {
                throw CacheError("cannot open \(name), and `recovery` says not to replace it", error)
            }
            let done = try salvage(contents)
            (path, leftOver) = (done.path, done.leftOver)
            let report = done.report ?? SalvageReport()
            salvaged = SalvagedStore(entries: report.entries, lost: report.lost, path: path)
            reason = "it was damaged (\(error.message)); \(Self.describe(done.report))"
        case .newer(let version):
            guard settings.newerSchema == .recreate else {
                throw refusal(
                    .newerSchema,
                    "a newer release of the library wrote it (schema \(version), this one knows \(Schema.current)); "
                        + "update the library, or set `newerSchema` to have it replaced")
            }
            reason = "a newer release of the library wrote it (schema \(version))"
            // A file that never was ours is never deleted, so whether it was is decided by the mark at its place.
            let isOurs = try head().applicationID == Schema.applicationID
            path = try setAside.move(isOurs: isOurs)
            leftOver = setAside.finish(path, isOurs: isOurs)
        }
        let done = StoreNotice.setAside(path: path, reason: reason)
        return (leftOver.map { [done, .backgroundFailure($0)] } ?? [done], salvaged)
    }

    private static func describe(_ report: SalvageReport?) -> String {
        guard let report else { return "nothing in it could be read" }
        return "\(report.entries) of its entries were carried over, \(report.lost) were lost"
    }
}
