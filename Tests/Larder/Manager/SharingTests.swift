import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

struct SharingTests {
    private let folder: TemporaryFolder
    private var url: URL { folder("store.sqlite") }

    init() throws { folder = try TemporaryFolder() }

    @Test func `of two managers on one path one works on when the other is closed`() throws {
        let (a, b) = (try CacheManager(url: url), try CacheManager(url: url))
        try a.close()
        try b.store().insertRow(named: "still open")
        try b.close()
        let c = try CacheManager(url: url)
        #expect(try c.store().rowCount() == 1)
    }

    @Test func `a dropped manager gives its store back`() throws {
        weak var store: Store?
        do {
            let manager = try CacheManager(url: url)
            store = try manager.store()
            #expect(store != nil)
        }
        #expect(store == nil)
    }

    // case 272
    @Test func `threads that open and close one path lose nothing`() throws {
        let errors = errors(ofThreads: 8) { thread in
            for round in 0..<200 {
                let manager = try CacheManager(url: url, configuration: .patient)
                try manager.store().insertRow(named: "\(thread) \(round)")
                try manager.close()
            }
        }
        #expect(errors == [])
        #expect(try CacheManager.rowCount(at: url) == 1600)
    }

    @Test func `a reader and a writer that open a path at the same time both work`() throws {
        try CacheManager.makeStore(at: url, rows: 1)
        for round in 1...100 {
            do {
                // It leaves a log, and nobody has the log's index open when the two come.
                var writer = try Connection.open(.file(url.path), .init(role: .writer, busyMilliseconds: 1000))
                try writer.insertRow(named: "in the log \(round)")
            }
            let errors = errors(ofThreads: 2) { thread in
                var configuration = CacheManager.Configuration.patient
                if thread == 0 { configuration.access = .readOnly }
                let manager = try CacheManager(url: url, configuration: configuration)
                if thread == 1 { try manager.store().insertRow(named: "written \(round)") }
                _ = try manager.store().rowCount()
                try manager.close()
            }
            #expect(errors == [])
        }
        #expect(try CacheManager.rowCount(at: url) == 201)
    }
}
