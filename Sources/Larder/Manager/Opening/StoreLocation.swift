/// The paths of a store: the database's and those beside it.
package struct StoreLocation: Hashable, Sendable {
    /// The folder, without symbolic links.
    let folder: String

    /// The database's name in it.
    let name: String

    /// The database.
    package var path: String { folder == "/" ? "/" + name : folder + "/" + name }

    /// SQLite's log and its index.
    var logs: [String] { [path + "-wal", path + "-shm"] }

    /// The file that the one locks who creates, migrates or replaces the store.
    ///
    /// SQLite never sees it.
    var lock: String { path + ".lock" }

    /// The folder of spilled values.
    package var files: String {
        // A database that is not named `….sqlite` must not share a folder with one that is.
        path.hasSuffix(".sqlite") ? path.dropLast(".sqlite".count) + ".files" : path + "-files"
    }

    /// The location of the database at `path`; its folder is made if it is missing and `makesFolder` says so.
    init(path: String, makesFolder: Bool) throws(CacheError) {
        guard path.hasPrefix("/"), !path.contains("\0") else {
            throw CacheError(.invalidName, "a store needs the absolute path of a file, without NUL: “\(path)”")
        }
        let name = String(path[path.index(after: path.lastIndex(of: "/") ?? path.startIndex)...])
        try Self.check(name: name)
        self.name = name
        let folder = String(path.dropLast(name.count))
        do {
            if makesFolder { try FileSystem.makeFolders(folder == "/" ? "/" : String(folder.dropLast())) }
            self.folder = try FileSystem.resolved(folder)
        } catch {
            throw CacheError("cannot use the folder of \(path)", error)
        }
    }

    /// Refuses what cannot be the name of one file in a folder, with what is put behind it.
    static func check(name: String) throws(CacheError) {
        let problem: String? =
            if name.isEmpty {
                "it is empty"
            } else if name == "." || name == ".." {
                "it means a folder"
            } else if name.contains("/") || name.contains("\0") {
                "it has a slash or a NUL in it"
            } else if name.utf8.count > 180 {
                "it is longer than 180 bytes"
            } else {
                nil
            }
        if let problem { throw CacheError(.invalidName, "“\(name)” cannot name a store: \(problem)") }
    }
}
