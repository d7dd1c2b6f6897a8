import Foundation
import Larder
import LarderTestSupport
import Testing

struct SmallStoreTests {
    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    private func size() throws -> Int {
        try place.folder.names.reduce(0) { try $0 + place.folder($1).fileSize() }
    }

    @Test func `three short entries take less than 200 KB, with all files of the store`() throws {
        let manager = try place.manager()
        let cache: Cache<String, String> = try manager.cache(named: "names", version: "1", maxAge: .hours(1))
        for name in ["a", "b", "c"] { cache[name] = name }
        let open = try size()
        #expect(open < 200_000)
        try manager.close()
        #expect(try size() < 200_000)
    }

    @Test func `the ballast grows with the database, to 4 MB`() throws {
        let manager = try place.manager()
        let cache: Cache<Int, Data> = try manager.cache(named: "a", version: "1", maxAge: .hours(1))
        let ballast = place.folder("store.sqlite.ballast")
        var sizes: [Int] = []
        for key in 0..<1600 {
            cache[key] = Data(repeating: 1, count: 4000)
            if key % 400 == 0 {
                try manager.maintain()
                sizes.append(try ballast.fileSize())
            }
        }
        try manager.maintain()
        sizes.append(try ballast.fileSize())
        #expect(sizes[0] < 100_000 && sizes[1] > 1_600_000 && sizes == sizes.sorted() && sizes.last == 4_096_000)
    }
}
