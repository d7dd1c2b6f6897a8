internal import LarderSQLite

/// Moves a store that cannot be used out of the way, whole.
///
/// The caller holds the lock file. The database goes first: from then on there is none at the path, and whatever a crash
/// leaves behind is known to be a rest.
struct SetAside {
    let location: StoreLocation
    let vfs: String?

    /// Milliseconds since 1970.
    let now: Int64

    /// Moves the store's files to names of their own beside it; returns the database's new path.
    ///
    /// - Parameter isOurs: Whether the database carried our mark. Of those sets the newest is kept, the others go.
    func callAsFunction(isOurs: Bool) throws(SystemError) -> String {
        let target = location.path + (isOurs ? Self.ours : Self.others) + stamp()
        if try FileSystem.status(location.path) != nil { try FileSystem.move(location.path, to: target) }
        try move(rests: target)
        ringOut(target)
        if isOurs { try prune(except: target) }
        return target
    }

    /// Moves what stands beside a database that is gone, if anything does.
    func rests() throws(SystemError) {
        let target = location.path + Self.others + stamp()
        try move(rests: target)
    }

    private static let ours = ".corrupt-"
    private static let others = ".corrupt-other-"

    private func move(rests target: String) throws(SystemError) {
        for (path, target) in zip(rests(of: location.path, files: location.files), rests(of: target)) {
            if try FileSystem.status(path) != nil { try FileSystem.move(path, to: target) }
        }
    }

    private func rests(of path: String, files: String? = nil) -> [String] {
        [path + "-wal", path + "-shm", files ?? path + ".files"]
    }

    /// Milliseconds since 1970 and some random digits: names sort by age, and two never meet.
    private func stamp() -> String {
        // Thirteen digits until the year 2286, more than that for a clock that is ahead.
        let time = String(max(now, 0)).leftPadded(to: 13)
        return time + "-" + String(UInt32.random(in: .min ... .max), radix: 16).leftPadded(to: 8)
    }

    /// Makes the commit counter move for the processes that still have the files open, so that they look where they are.
    ///
    /// The files are damaged, so this may fail; then those processes find out at their next write, or when they next
    /// renew a read transaction.
    private func ringOut(_ path: String) {
        do {
            guard try FileHead(path: path, vfs: vfs).applicationID == Schema.applicationID else { return }
            var connection = try Connection.open(.file(path, vfs: vfs), .init(role: .writer, busyMilliseconds: 100))
            try connection.setUserVersion(try connection.userVersion())
        } catch {
            return
        }
    }

    private func prune(except kept: String) throws(SystemError) {
        let prefix = location.name + Self.ours
        let kept = kept.split(separator: "/").last.map(String.init) ?? kept
        for name in try FileSystem.names(in: location.folder) where name.hasPrefix(prefix) && !name.hasPrefix(kept) {
            guard Self.isStamp(name.dropFirst(prefix.count)) else { continue }
            try FileSystem.remove(location.folder + "/" + name)
        }
    }

    /// Whether `text` is what `stamp` makes, with one of the endings of a set.
    private static func isStamp(_ text: Substring) -> Bool {
        guard let match = text.prefixMatch(of: /[0-9]{13,}-[0-9a-f]{8}/) else { return false }
        return ["", "-wal", "-shm", ".files"].contains(String(text[match.range.upperBound...]))
    }
}

extension String {
    fileprivate func leftPadded(to width: Int) -> String {
        String(repeating: "0", count: max(0, width - count)) + self
    }
}
