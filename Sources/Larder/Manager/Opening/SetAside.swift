internal import LarderSQLite

/// Moves a store that cannot be used out of the way, whole.
///
/// The caller holds the lock file. The database goes first: from then on there is none at the path, and whatever a crash
/// leaves behind is known to be a rest.
struct SetAside {
    let location: StoreLocation
    let vfs: String?

    /// Moves the store's files to other names in their folder.
    ///
    /// - Parameters:
    ///   - isOurs: Whether the database carried our mark. Of those sets the newest is kept, the others are deleted.
    ///   - keepsFiles: Whether the folder of large values stays, for the store that takes this one's place.
    /// - Returns: The database's new path.
    func move(isOurs: Bool, keepsFiles: Bool = false) throws(SystemError) -> String {
        let target = location.path + (isOurs ? Self.ours : Self.others) + stamp()
        if try FileSystem.status(location.path) != nil { try FileSystem.move(location.path, to: target) }
        // In this order on the disk, too: the old log must not meet the new database.
        try FileSystem.sync(location.folder)
        try move(keepsFiles ? rests.dropLast() : rests[...], to: target)
        return target
    }

    /// Makes other processes look at the moved database, and deletes older sets.
    ///
    /// - Returns: Why an older set could not be deleted.
    func finish(_ target: String, isOurs: Bool) -> CacheError? {
        ringOut(target)
        guard isOurs else { return nil }
        do {
            try prune(except: target)
            return nil
        } catch {
            return CacheError("cannot delete an older damaged store beside \(location.path)", error)
        }
    }

    /// Moves what stands beside a database that is gone, if anything does.
    func moveRests() throws(SystemError) {
        try move(rests, to: location.path + Self.others + stamp())
    }

    /// Moves the log that belongs to a database which another one has taken the place of.
    func moveLog() throws(SystemError) {
        try move(rests.dropLast(), to: location.path + Self.others + stamp())
    }

    private static let ours = ".corrupt-"
    private static let others = ".corrupt-other-"
    private static let endings = ["-wal", "-shm", ".files"]

    private var rests: [(path: String, ending: String)] {
        Array(zip(location.logs + [location.files], Self.endings))
    }

    private func move(_ rests: some Sequence<(path: String, ending: String)>, to target: String) throws(SystemError) {
        for (path, ending) in rests {
            if try FileSystem.status(path) != nil { try FileSystem.move(path, to: target + ending) }
        }
        try FileSystem.sync(location.folder)
    }

    /// Milliseconds since 1970 and some random digits: names sort by age, and two never meet.
    private func stamp() -> String {
        // Thirteen digits until the year 2286.
        String(max(SystemClock.now(), 0)).leftPadded(to: 13) + "-"
            + String(UInt32.random(in: .min ... .max), radix: 16).leftPadded(to: 8)
    }

    /// Makes the commit counter move for the processes that still have the files open, so that they look where they are.
    ///
    /// The files are damaged, so this may fail; then those processes find out at their next write, or when they next
    /// renew a read transaction.
    private func ringOut(_ path: String) {
        do {
            guard try FileHead(path: path, vfs: vfs).applicationID == Schema.applicationID else { return }
            var connection = try Connection.open(.file(path, vfs: vfs), .init(role: .writer, busyMilliseconds: 100))
            try connection.transaction { (connection) throws(SQLiteError) in
                try connection.setUserVersion(try connection.userVersion())
            }
        } catch {
            return
        }
    }

    private func prune(except kept: String) throws(SystemError) {
        let prefix = Array((location.name + Self.ours).utf8)
        let kept = Array(kept.utf8.suffix(prefix.count + Self.stampCount))
        for name in try FileSystem.names(in: location.folder) {
            let bytes = Array(name.utf8)
            guard bytes.starts(with: prefix), !bytes.starts(with: kept) else { continue }
            guard Self.isStamp(bytes.dropFirst(prefix.count)) else { continue }
            try FileSystem.remove(location.folder + "/" + name)
        }
    }

    private static let stampCount = 13 + 1 + 8

    /// Whether `bytes` are what `stamp` makes, with one of the endings of a set.
    private static func isStamp(_ bytes: ArraySlice<UInt8>) -> Bool {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let match = text.prefixMatch(of: /[0-9]{13}-[0-9a-f]{8}/) else { return false }
        let ending = text[match.range.upperBound...]
        return ending.isEmpty || endings.contains(String(ending))
    }
}

extension String {
    fileprivate func leftPadded(to width: Int) -> String {
        String(repeating: "0", count: max(0, width - count)) + self
    }
}
