import Foundation
import Larder
import LarderTestSupport
import Testing

/// Stores that are opened, replaced or moved, and who learns of it.
struct CacheReopeningTests {
    private let place: TemporaryStore

    init() throws { place = try TemporaryStore(of: #fileID) }

    private func cache(_ manager: CacheManager) throws -> Cache<Int, String> {
        try manager.cache(named: "a", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
    }

    @Test func `the references of released caches do not accumulate, and those of open ones stay`() throws {
        let manager = try place.manager()
        var open: [Cache<Int, String>] = []
        for number in 0..<300 {
            let cache: Cache<Int, String> = try manager.cache(
                named: "\(number)", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
            cache[1] = "\(number)"
            if number % 10 == 0 { open.append(cache) }
            #expect(manager.openCacheCount <= max(17, 2 * open.count + 1))
        }
        for (number, cache) in open.enumerated() {
            let again: Cache<Int, String> = try manager.cache(
                named: "\(number * 10)", version: "1", maxAge: .hours(1), options: CacheOptions().steady)
            cache[1] = "again"
            #expect(again.memory[1] == "again")
        }
        let newer: Cache<Int, String> = try manager.cache(named: "10", version: "2", maxAge: .hours(1))
        #expect(open[1].memory[1] == nil && open[2][1] == "again" && newer[1] == nil)
        expectError(.superseded) { try open[1].setValue("x", forKey: 1) }
    }

    enum Loss: CaseIterable { case moved, damaged }

    enum Form: CaseIterable {
        case set, setMany, remove, take, removeMany, extended, clear, generated, update, updateOther, transaction
    }

    /// Ways of writing that meet any damage at all.
    private static let ways = Loss.allCases.flatMap { loss in
        Form.allCases.filter { loss == .moved || $0 != .clear }.map { (loss, $0) }
    }

    /// Leaves a store whose entries fill some pages, without a log.
    private func fill() throws {
        let manager = try place.manager()
        try cache(manager).setValues((0..<2000).map { ($0, String(repeating: "x", count: 200)) })
        try StoreProbe(manager).copyLog()
        try manager.close()
        try place.url.removeLog()
    }

    private func lose(_ loss: Loss) throws {
        switch loss {
        case .moved: try FileManager.default.moveItem(at: place.url, to: place.folder("elsewhere"))
        case .damaged: try place.url.overwritePagesBehindSchema()
        }
    }

    private func write(_ form: Form, _ cache: Cache<Int, String>) throws {
        switch form {
        case .set: try cache.setValue("new", forKey: 1)
        case .setMany: try cache.setValues([(1, "new"), (2, "new")])
        case .remove: try cache.remove(1)
        case .take: _ = try cache.removeValue(forKey: 1)
        case .removeMany: try cache.removeValues(forKeys: [1, 2])
        case .extended: try cache.setExtendedData(Data([1]), forKey: 1)
        case .clear: try cache.removeAll()
        case .generated: _ = try cache.value(forKey: 5000) { _ in "new" }
        case .update: try cache.update(1) { $0 = "new" }
        case .updateOther:
            try cache.update(1) { _ = $0 }
            try cache.update(3000) { $0 = "new" }
        case .transaction:
            try cache.manager.transaction { transaction in
                _ = try transaction.value(forKey: 2, in: cache)
                try transaction.setValue("new", forKey: 1, in: cache)
            }
        }
    }

    /// Writes on a thread of its own, which has to end, though maybe with the one error of a moved or damaged file; and then again.
    private func expectEnd(_ form: Form, _ cache: Cache<Int, String>) throws {
        do {
            try SideThread { try write(form, cache) }.value()
        } catch let error as CacheError {
            #expect(error.code == .storageUnavailable || error.code == .corrupt)
        }
        let later = SideThread { try cache.setValue("later", forKey: -3) }
        do {
            try later.value()
        } catch let error as CacheError where error.code == .corrupt {
            // What was loaded may have been stored on pages that are sound in memory. The write that meets damage is repeated.
            try SideThread { try cache.setValue("later", forKey: -3) }.value()
        }
        #expect(try cache.value(forKey: -3) == "later")
    }

    /// Something that is done the first time that it is asked for.
    private final class Once: Sendable {
        private let body = Locked<(@Sendable () throws -> Void)?>(nil)
        let outcomes = Told<String>()

        func set(_ new: @escaping @Sendable () throws -> Void) { body.change { $0 = new } }

        /// What was not asked for, which is forgotten.
        @discardableResult
        func take() -> (@Sendable () throws -> Void)? {
            body.change { body in
                defer { body = nil }
                return body
            }
        }

        func run() {
            guard let next = take() else { return }
            do {
                try next()
                outcomes.add("done")
            } catch {
                outcomes.add("\(error)")
            }
        }
    }

    /// A value that does something when it goes.
    private final class Ending: Sendable {
        private let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        deinit { body() }
    }

    @Test(arguments: ways)
    func `a log that is told of a loss may write to the new store`(loss: Loss, form: Form) throws {
        try fill()
        let told = Once()
        let manager = try place.manager { $0.log = { _ in told.run() } }
        let cache = try cache(manager)
        told.set {
            try cache.setValue("told", forKey: -1)
            try cache.update(-2) { $0 = "told" }
        }
        try lose(loss)
        try expectEnd(form, cache)
        told.take()
    }

    @Test(arguments: ways)
    func `a value that leaves memory because of a loss may write to the new store in its deinit`(
        loss: Loss, form: Form
    ) throws {
        try fill()
        let manager = try place.manager()
        let cache = try cache(manager)
        let codec = ValueCodec<Ending>(identifier: "ending", encode: { _ in Data([1]) }, decode: { _ in Ending({}) })
        let endings: Cache<Int, Ending> = try manager.cache(
            named: "endings", version: "1", maxAge: .hours(1), options: CacheOptions().steady, codec: codec)
        let ended = Once()
        endings[1] = Ending { ended.run() }
        try StoreProbe(manager).copyLog()
        ended.set { try cache.setValue("ended", forKey: -1) }
        try lose(loss)
        try expectEnd(form, cache)
        ended.take()
    }

    @Test func `a value that an opening releases may open a cache in its deinit`() throws {
        let manager = try place.manager()
        let codec = ValueCodec<Ending>(identifier: "ending", encode: { _ in Data([1]) }, decode: { _ in Ending({}) })
        @Sendable func endings(_ version: CacheVersion) throws -> Cache<Int, Ending> {
            try manager.cache(
                named: "endings", version: version, maxAge: .hours(1), options: CacheOptions().steady, codec: codec)
        }
        let ended = Once()
        let old = try endings("1")
        old[1] = Ending { ended.run() }
        ended.set { _ = try manager.cache(named: "other", version: "1", maxAge: .hours(1)) as Cache<Int, String> }
        let thread = SideThread { try endings("2").count }
        try Waiting.until { thread.result != nil }
        #expect(try thread.value() == 0)
        #expect(ended.outcomes.all == ["done"])
        #expect(old[1] == nil)
    }

    @Test func `a cache that finds the store replaced when it is opened follows the new one's commits`() throws {
        let other = try CacheManager(url: place.folder("next"), configuration: place.clock.configuration)
        try cache(other).setValue("new", forKey: 1)
        try other.close()

        let writer = try place.manager()
        try cache(writer).setValue("old", forKey: 1)
        let reader = try place.manager { $0.access = .readOnly }
        try moveStore(place.url, to: place.folder("elsewhere"))
        try moveStore(place.folder("next"), to: place.url)
        let cache = try cache(reader)
        #expect(cache[1] == "new")
        #expect(cache[1] == "new")
        var shell = try Intruder(place.url)
        try shell.execute("DELETE FROM entry")
        #expect(cache[1] == nil)
        withExtendedLifetime(writer) {}
    }

    private func moveStore(_ url: URL, to new: URL) throws {
        for ending in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: url.path + ending) {
            try FileManager.default.moveItem(atPath: url.path + ending, toPath: new.path + ending)
        }
    }

    @Test func `what was known of a store says nothing of the one that took its place`() throws {
        let other = try CacheManager(url: place.folder("next"), configuration: place.clock.configuration)
        try cache(other).setValue("new", forKey: 1)
        try other.close()

        let manager = try place.manager()
        let cache = try cache(manager)
        cache[1] = "old"
        var shell = try Intruder(place.url)
        for _ in 0..<20 {
            try shell.execute("UPDATE cache SET age = age")
            #expect(cache[1] == "old")
        }
        try moveStore(place.url, to: place.folder("elsewhere"))
        try moveStore(place.folder("next"), to: place.url)
        // Says that somebody has committed, to those who know the old one.
        try shell.execute("UPDATE cache SET age = age")
        let reader = SideThread { (0..<3).map { _ in cache[1] } }
        try Waiting.until { reader.result != nil }
        #expect(try reader.value() == ["new", "new", "new"])
        #expect(cache.memory.contains(1))
        try expectInvariants(cache)
    }
}
