import Foundation
import Larder
import LarderTestSupport

/// Values in files: those that cannot be read for a while, and who writes and reads them.
extension CacheProgram {
    /// Has asynchronous calls write and read files, and says how often, and how often on the pool's one thread.
    static func holdUpFiles(_ path: String) async throws {
        say("one thread", await hasOneThread())
        let calls = Locked((all: 0, onPool: 0))
        /// Called by the thread that is about to write a file, or has just read one.
        @Sendable func ask() {
            let isOnPool = isOnPool()
            calls.change { $0 = ($0.all + 1, $0.onPool + (isOnPool ? 1 : 0)) }
        }
        func sayCalls(_ word: String) {
            let (all, onPool) = calls.value
            say(word, all, onPool)
            calls.change { $0 = (0, 0) }
        }
        let codec = ValueCodec<Data>(identifier: "asking", encode: { $0 }) { data in
            ask()
            return data
        }
        let fileName: @Sendable (String) -> String = { _ in
            ask()
            return ""
        }
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: .patient)
        let cache: Cache<Int, Data> = try await manager.cache(
            named: "files", version: "1", maxAge: .days(7),
            options: CacheOptions(memory: .disabled, inlineLimit: 0, fileName: fileName), codec: codec)
        try await cache.setValue(Data([1]), forKey: 1)
        try await cache.setValues([2: Data([2]), 3: Data([3])])
        sayCalls("written")
        for key in 1...3 { _ = try await cache.value(forKey: key) }
        sayCalls("read")
        try await manager.close()
    }

    private static func cache(_ path: String) throws -> (Cache<Int, Data>, CacheManager) {
        let manager = try CacheManager(url: URL(fileURLWithPath: path))
        let cache: Cache<Int, Data> = try manager.cache(
            named: "files", version: "1", maxAge: .unlimited, options: CacheOptions(memory: .disabled, inlineLimit: 0))
        return (cache, manager)
    }

    private static func reading(_ cache: Cache<Int, Data>, _ manager: CacheManager) throws -> String {
        do {
            guard let value = try cache.value(forKey: 1) else { return "nil" }
            return "value \(value.count), \(cache.statistics.failures) failures"
        } catch {
            let updated = outcome { try cache.update(1) { _ in say("an update began") } }
            let seen = outcome {
                try manager.transaction { _ = try $0.value(forKey: 1, in: cache) }
            }
            return "error \(error.code), contained \(try cache.contains(1)), update \(updated), transaction \(seen)"
        }
    }

    private static func outcome(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "done"
        } catch {
            return (error as? CacheError).map { "\($0.code)" } ?? "\(error)"
        }
    }

    /// Reads key 1 for each line, as a user who is not root, to whom permissions apply.
    static func readAsNobody(_ path: String) throws {
        if getuid() == 0, setgid(65534) != 0 || setuid(65534) != 0 { exit(2) }
        let (cache, manager) = try cache(path)
        try cache.setValue(Data(count: 5000), forKey: 1)
        say(try cache.fileURL(forKey: 1)?.path ?? "none")
        while readLine() != nil {
            say(try reading(cache, manager))
            // A write takes with it what was taken for damaged.
            try cache.setValue(Data([1]), forKey: 2)
        }
    }

    /// Makes a store, and opens it again for each line, as a user who is not root, to whom permissions apply.
    static func openAsNobody(_ path: String) throws {
        if getuid() == 0, setgid(65534) != 0 || setuid(65534) != 0 { exit(2) }
        func opening(_ access: CacheManager.Access = .readWrite) -> String {
            do throws(CacheError) {
                let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: .init(access: access))
                try manager.close()
                return "opened"
            } catch {
                return "\(error.code): \(error.message)"
            }
        }
        say(opening())
        while readLine() != nil {
            say(opening())
            say(opening(.readOnly))
        }
    }

    /// Reads key 1 while the process may open no more files, and once it may again.
    static func readWithoutDescriptors(_ path: String) throws {
        let (cache, manager) = try cache(path)
        try cache.setValue(Data(count: 5000), forKey: 1)
        // The connection that reads is open from here on.
        for _ in 0..<2 { say("contained", try cache.contains(1)) }
        var taken: [Int32] = []
        while true {
            let descriptor = dup(0)
            guard descriptor >= 0 else { break }
            taken.append(descriptor)
        }
        for _ in 0..<2 { say(try reading(cache, manager)) }
        for descriptor in taken { close(descriptor) }
        try cache.setValue(Data([1]), forKey: 2)
        say(try reading(cache, manager))
    }
}
