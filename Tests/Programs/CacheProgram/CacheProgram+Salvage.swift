import Foundation
import Larder
import LarderTestSupport

/// Stores that tests damage.
extension CacheProgram {
    /// Creates a store whose log has newer values than its main file, and waits to be killed.
    static func leaveLog(_ path: String) throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: SampleStore.configuration)
        let cache = try SampleStore.cache(manager, "first")
        try cache.setValues((0..<200).map { ($0, "first \($0)") })
        try manager.store().checkpoint()
        for start in stride(from: 0, to: 200, by: 20) {
            try cache.setValues((start..<start + 20).map { ($0, "second \($0)") })
        }
        say("made")
        withExtendedLifetime((manager, cache)) { _ = readLine() }
    }

    /// Opens a damaged store of `count` entries a cache, and says how many of them can be read.
    static func openDamaged(_ path: String, count: Int) throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: SampleStore.configuration)
        var found = 0
        for name in SampleStore.names {
            let cache = try SampleStore.cache(manager, name)
            for key in 0..<count where try cache.value(forKey: key) == SampleStore.value(name, key) { found += 1 }
        }
        say("found", found)
        try manager.close()
    }

    /// Damages a page of a store on a disk that has no room for a second one, reads it, makes room, and reads it again.
    ///
    /// Says at last how many entries have to be found, and how many are.
    static func salvageFull(_ folder: String) throws {
        let url = URL(fileURLWithPath: folder + "/store.sqlite")
        let sample = try SampleStore(at: url, count: 200)
        let (page, onPage) = try sample.leaf()
        try url.overwritePage(page)
        let ballast = URL(fileURLWithPath: folder + "/ballast")
        var size = 0
        while true {
            do {
                size += 4096
                try ballast.grow(to: size)
            } catch {
                break
            }
        }
        try ballast.cut(to: max(0, size - 16 * 4096))
        let manager = try CacheManager(url: url, configuration: SampleStore.configuration)
        let caches = try SampleStore.names.map { try SampleStore.cache(manager, $0) }
        say("read", code { for cache in caches { for key in 0..<200 { _ = try cache.value(forKey: key) } } })
        _ = code { try manager.close() }
        let start = (page - 1) * 4096
        let isDamaged = try Data(contentsOf: url)[start..<start + 4096].allSatisfy { $0 == 0x5A }
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        say("kept", isDamaged, names.allSatisfy { !$0.contains(".salvage") && !$0.contains(".corrupt-") })
        try FileManager.default.removeItem(at: ballast)
        say("found", sample.entries.count - onPage.count)
        try openDamaged(url.path, count: 200)
    }
}

extension URL {
    /// Appends zeros until the file has so many bytes.
    fileprivate func grow(to size: Int) throws {
        if !FileManager.default.fileExists(atPath: path) { try Data().write(to: self) }
        let handle = try FileHandle(forWritingTo: self)
        let end = try handle.seekToEnd()
        try handle.write(contentsOf: Data(repeating: 1, count: size - Int(end)))
        try handle.close()
    }
}
