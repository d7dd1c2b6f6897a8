import Foundation
import Larder
import LarderTestSupport
import Testing

/// Managers on one path.
struct SharingTests {
    private let folder: TemporaryFolder
    private var url: URL { folder("store.sqlite") }

    init() throws { folder = try TemporaryFolder() }

    private func manager() throws -> CacheManager { try CacheManager(url: url, configuration: .patient) }

    private func cache(_ manager: CacheManager) throws -> Cache<Int, Int> {
        try manager.cache(named: "a", version: "1", maxAge: .unlimited)
    }

    @Test func `a manager goes on when another one on its path is closed`() throws {
        let (first, second) = (try manager(), try manager())
        try cache(first).setValue(1, forKey: 1)
        try first.close()
        try cache(second).setValue(2, forKey: 2)
        try second.close()
        #expect(try cache(manager()).snapshot() == [1: 1, 2: 2])
    }

    @Test func `threads that open and close one path lose nothing`() throws {
        let rounds = LongTests.areEnabled ? 200 : 25
        let errors = errors(ofThreads: 8) { thread in
            for round in 0..<rounds {
                let opened = try manager()
                try cache(opened).setValue(round, forKey: thread * 1000 + round)
                try opened.close()
            }
        }
        #expect(errors == [])
        let last = try manager()
        let entries = try cache(last)
        #expect(try entries.count == 8 * rounds)
        for (key, value) in entries { #expect(value == key % 1000) }
        #expect(try last.verify().isHealthy)
    }
}
