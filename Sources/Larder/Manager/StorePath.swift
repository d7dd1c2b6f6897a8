internal import Foundation

/// The paths of stores, which are bytes: a slash is a slash even if a combining mark follows it.
enum StorePath {
    /// Returns the path of a store in the user's caches directory.
    static func path(named name: String) throws(CacheError) -> String {
        try check(name: name)
        return try CachesFolder.path() + "/" + name + ".sqlite"
    }

    /// Returns the path of a file URL.
    static func path(of url: URL) throws(CacheError) -> String {
        guard url.isFileURL else {
            throw CacheError(.invalidConfiguration, "A store needs a file URL, and \(url) is none.")
        }
        let path = url.absoluteURL.standardizedFileURL.path
        let bytes = Array(path.utf8)
        guard bytes.first == UInt8(ascii: "/"), !bytes.contains(0) else {
            throw CacheError(.invalidName, "A store needs the absolute path of a file, without NUL: \"\(path)\".")
        }
        let last = bytes.split(separator: UInt8(ascii: "/")).last ?? []
        try check(name: String(decoding: last, as: UTF8.self))
        return path
    }

    /// Throws if a name cannot be that of one file in a folder, with what is added to it.
    static func check(name: String) throws(CacheError) {
        let bytes = Array(name.utf8)
        let problem: String? =
            if bytes.isEmpty {
                "It is empty."
            } else if name == "." || name == ".." {
                "It means a folder."
            } else if bytes.contains(UInt8(ascii: "/")) || bytes.contains(0) {
                "It contains a slash or NUL."
            } else if bytes.count > 180 {
                "It is longer than 180 bytes."
            } else {
                nil
            }
        if let problem { throw CacheError(.invalidName, "\"\(name)\" cannot be the name of a store. \(problem)") }
    }
}
