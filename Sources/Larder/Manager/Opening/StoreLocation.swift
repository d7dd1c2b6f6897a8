/// The paths of a store: the database's and those beside it.
///
/// Paths are bytes to the file system, so they are compared and taken apart as bytes: a slash is a slash even if a
/// combining mark follows it, and two spellings of one letter are two files.
package struct StoreLocation: Sendable {
    /// The folder, without symbolic links.
    let folder: String

    /// The database's name in it.
    let name: String

    /// The database.
    package var path: String { folder == "/" ? "/" + name : folder + "/" + name }

    /// SQLite's log and its index.
    var logs: [String] { [path + "-wal", path + "-shm"] }

    /// The file that the one locks who creates, migrates or replaces the store; SQLite never sees it.
    var lock: String { path + ".lock" }

    /// The file into which a damaged store is salvaged, while that is under way.
    var salvage: String { path + ".salvage" }

    /// The same file when it is complete, until it takes the place of the damaged store.
    var salvaged: String { path + ".salvaged" }

    /// The folder of spilled values.
    var files: String {
        // A database that is not named `….sqlite` must not share a folder with one that is.
        guard name.utf8.count > Self.ending.count, name.utf8.suffix(Self.ending.count).elementsEqual(Self.ending) else {
            return path + "-files"
        }
        return String(decoding: path.utf8.dropLast(Self.ending.count), as: UTF8.self) + ".files"
    }

    private static let ending = Array(".sqlite".utf8)
    private static let slash = UInt8(ascii: "/")

    /// The location of the database at `path`; its folder is made if it is missing and `makesFolder` says so.
    init(path: String, makesFolder: Bool) throws(CacheError) {
        let bytes = Array(path.utf8)
        guard bytes.first == Self.slash, !bytes.contains(0), let last = bytes.lastIndex(of: Self.slash) else {
            throw CacheError(.invalidName, "a store needs the absolute path of a file, without NUL: “\(path)”")
        }
        name = String(decoding: bytes[(last + 1)...], as: UTF8.self)
        try Self.check(name: name)
        let folder = last == 0 ? "/" : String(decoding: bytes[..<last], as: UTF8.self)
        do {
            if makesFolder { try FileSystem.makeFolders(folder) }
            self.folder = try FileSystem.resolved(folder)
        } catch {
            throw CacheError("cannot use the folder of \(path)", error)
        }
    }

    /// Refuses what cannot be the name of one file in a folder, with what is put behind it.
    static func check(name: String) throws(CacheError) {
        let bytes = Array(name.utf8)
        let problem: String? =
            if bytes.isEmpty {
                "it is empty"
            } else if bytes == [UInt8(ascii: ".")] || bytes == [UInt8(ascii: "."), UInt8(ascii: ".")] {
                "it means a folder"
            } else if bytes.contains(slash) || bytes.contains(0) {
                "it has a slash or a NUL in it"
            } else if bytes.count > 180 {
                "it is longer than 180 bytes"
            } else {
                nil
            }
        if let problem { throw CacheError(.invalidName, "“\(name)” cannot name a store: \(problem)") }
    }
}

extension StoreLocation: Hashable {
    package static func == (a: StoreLocation, b: StoreLocation) -> Bool {
        a.path.utf8.elementsEqual(b.path.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        for byte in path.utf8 { hasher.combine(byte) }
    }
}
