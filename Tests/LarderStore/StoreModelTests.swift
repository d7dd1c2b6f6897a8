import Foundation
import LarderStore
import LarderTestSupport
import Testing

/// The rows of two caches against dictionaries, over many random operations.
///
/// Some payloads are above the limit of 12 bytes, and are files.
struct StoreModelTests {
    private static let inlineLimit = 12

    private struct Entry: Equatable {
        var text: String
        var isPinned = false
        var extended: Data?
        var size: Int64 { Int64(text.utf8.count + (extended?.count ?? 0)) }
    }

    private func declaration(_ name: String, _ version: Int) -> CacheDeclaration {
        CacheDeclaration(name: name, version: "\(version)", codec: "data", ageRule: .unlimited)
    }

    @Test(arguments: [UInt64(1), 2])
    func `rows equal a model after each of ten thousand random operations, with reopening`(seed: UInt64) throws {
        let place = try StorePlace()
        var random = Seeded(seed)
        var store = try place.open()
        var versions = ["a": 1, "b": 1]
        var models: [String: [Int64: Entry]] = ["a": [:], "b": [:]]
        var rows: [String: CacheRows] = [:]
        func open(_ name: String) throws {
            rows[name] = try store.open(declaration(name, versions[name] ?? 1), inlineLimit: Self.inlineLimit)
        }
        for name in versions.keys { try open(name) }

        for step in 0..<5_000 {
            let name = Bool.random(using: &random) ? "a" : "b"
            guard let cache = rows[name], var model = models[name] else { return }
            let key = Int64.random(in: 0..<40, using: &random)
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<40:
                let text = String(repeating: "v", count: .random(in: 0...20, using: &random)) + "\(step)"
                var meta = RowMeta()
                meta.isPinned = Int.random(in: 0..<4, using: &random) == 0
                if Bool.random(using: &random) { meta.extendedData = Data(count: .random(in: 0...5, using: &random)) }
                let keepsPin = Bool.random(using: &random)
                try cache.run(.put([EntryWrite(key, text, meta: meta, keepsPin: keepsPin)]))
                model[key] = Entry(
                    text: text, isPinned: keepsPin ? model[key]?.isPinned ?? false : meta.isPinned,
                    extended: meta.extendedData)
            case 40..<50:
                let keys = (0..<8).map { _ in Int64.random(in: 0..<40, using: &random) }
                try cache.run(.put(keys.map { EntryWrite($0, "many \(step)") }))
                for key in keys { model[key] = Entry(text: "many \(step)") }
            case 50..<65:
                try cache.run(.remove([key, key &+ 1].map(StoredKey.integer)))
                model[key] = nil
                model[key &+ 1] = nil
            case 65..<75:
                let taken = try cache.run(.take(.integer(key))).taken
                #expect(taken.map { String(decoding: $0.payload, as: UTF8.self) } == model[key]?.text)
                model[key] = nil
            case 75..<85:
                let data = Data(count: .random(in: 0...9, using: &random))
                try cache.run(.change(.integer(key), .extendedData(data)))
                model[key]?.extended = data
            case 85..<92:
                try cache.run(.change(.integer(key), .pin(true)))
                model[key]?.isPinned = true
            case 92..<94:
                try cache.run(.clear)
                model = [:]
            case 94:
                versions[name, default: 1] += 1
                try open(name)
                model = [:]
            case 95:
                try store.transaction { _ = try $0.reclaim(atMost: 7) }
            case 96 where step % 5 == 0:
                try store.close()
                store = try place.open()
                for name in versions.keys { try open(name) }
            default: break
            }
            models[name] = model
            if step % 25 == 0 { try expectListing(rows[name], model, "step \(step)") }
            try expect(rows[name], model, key, "step \(step)")
        }
        for (name, model) in models {
            for key in 0..<42 { try expect(rows[name], model, Int64(key), "end of \(name)") }
        }
        try store.close()
        // Rows of retired incarnations name files too. Upkeep may still discard files of reclaimed rows.
        try Waiting.until { try place.fileNames() == place.namedFiles() }
    }

    private func expectListing(_ rows: CacheRows?, _ model: [Int64: Entry], _ comment: Comment) throws {
        guard let rows else { return }
        let sorted = model.keys.sorted().map(StoredKey.integer)
        #expect(try rows.keys().rows == sorted, comment)
        #expect(try rows.rows(KeyRange(isDescending: true)).rows.map(\.header.key) == sorted.reversed(), comment)
        let list = try rows.list(.size)
        let bySize = try rows.rows(list, 0..<list.count).rows
        #expect(bySize.map(\.header.size) == model.values.map(\.size).sorted(), comment)
    }

    private func expect(_ rows: CacheRows?, _ model: [Int64: Entry], _ key: Int64, _ comment: Comment) throws {
        let row = try rows?.row(.integer(key))
        let found = row.map {
            Entry(
                text: String(decoding: $0.payload, as: UTF8.self), isPinned: $0.header.meta.isPinned,
                extended: $0.header.meta.extendedData)
        }
        #expect(found == model[key], comment)
        #expect(
            try rows?.totals() == Totals(count: Int64(model.count), size: model.values.reduce(0) { $0 + $1.size }),
            comment)
    }
}
