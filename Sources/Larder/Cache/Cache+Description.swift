internal import Foundation
internal import LarderStore

extension Cache: CustomStringConvertible {
    /// The name, the version, the number of entries in memory, and the file.
    ///
    /// The entries on disk are not counted for it.
    public var description: String {
        "Cache(\"\(name)\", version \"\(version)\", \(memory.count) entries in memory, \(manager.place))"
    }
}

extension CacheManager: CustomStringConvertible {
    /// The file, and the names of the open caches.
    public var description: String {
        let names = store.openNames.map { "\"\($0)\"" }.joined(separator: ", ")
        let state = store.isClosed ? "closed" : names.isEmpty ? "no open caches" : "open: \(names)"
        return "CacheManager(\(place), \(state))"
    }

    fileprivate var place: String { url?.path ?? "in memory" }
}
