import Foundation
import Larder
import LarderTestSupport
import Testing

/// A manager that only reads, beside another process that writes.
struct ReadOnlyProcessTests {
    @Test(arguments: [10, 5000])
    func `what another process sets, clears, purges and removes is seen at once`(size: Int) throws {
        let folder = try TemporaryFolder()
        let url = folder("store.sqlite")
        let other = try ChildProcess("larder-test-peer", [url.path, "1"])
        #expect(try other.ask("set a \(size) 1") == "ok")
        var configuration = CacheManager.Configuration.patient
        configuration.access = .readOnly
        let manager = try CacheManager(url: url, configuration: configuration)
        let cache: Cache<String, Data> = try manager.cache(named: "shared", version: "1", maxAge: .unlimited)
        let newer: Cache<String, Data> = try manager.cache(named: "shared", version: "2", maxAge: .unlimited)
        func bytes(_ byte: UInt8) -> Data { Data(repeating: byte, count: size) }
        for round in UInt8(1)...5 {
            #expect(try other.ask("set a \(size) \(round)") == "ok")
            for _ in 0..<2 { #expect(try cache.value(forKey: "a") == bytes(round)) }
            #expect(try cache.count == 1)
            #expect(try other.ask("clear") == "ok")
            for _ in 0..<2 { #expect(try cache.value(forKey: "a") == nil) }
            #expect(try cache.isEmpty && cache.snapshot().isEmpty && cache.entry(forKey: "a") == nil)
            #expect(Array(cache.keys) == [])
            #expect(try manager.cacheInfo().map(\.count) == [0])
        }
        #expect(try other.ask("set b \(size) 9") == "ok")
        #expect(try cache.value(forKey: "b") == bytes(9))
        #expect(try newer.value(forKey: "b") == nil)
        // Another version takes the place of this one.
        #expect(try other.ask("open 2") == "ok")
        #expect(try other.ask("set b \(size) 8") == "ok")
        #expect(try cache.value(forKey: "b") == nil)
        #expect(try newer.value(forKey: "b") == bytes(8))
        expectError(.readOnly) { try newer.remove("b") }
        #expect(try other.ask("maintain") == "ok")
        #expect(try newer.value(forKey: "b") == bytes(8))
        #expect(try other.finish().status == 0)
    }
}
