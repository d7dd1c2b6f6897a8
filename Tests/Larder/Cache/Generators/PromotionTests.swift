import Foundation
import Larder
import LarderSQLite
import LarderTestSupport
import Testing

/// Reads that are held up while they decode what they found, beside writes that end meanwhile.
///
/// One after another: of the system's threads, on which a task's reads run, each holds up one.
@Suite(.serialized)
struct PromotionTests {
    private let place: StorePlace
    private let gate = LoadGate()
    private let isClosed = Locked(false)
    private let arrived = LoadGate()

    init() throws { place = try StorePlace() }

    enum Reader: CaseIterable {
        case value, ofFile, inTask, values, valuesInTask, generating, generatingInTask, generatingMany

        func read(_ cache: Cache<Int, String>) async throws -> String? {
            switch self {
            case .value, .ofFile: try await onThread { try cache.value(forKey: 1) }
            case .inTask: try await cache.value(forKey: 1)
            case .values: try await onThread { try cache.values(forKeys: [1])[1] }
            case .valuesInTask: try await cache.values(forKeys: [1])[1]
            case .generating: try await onThread { try cache.value(forKey: 1) { _ in throw Offline() } }
            case .generatingInTask: try await cache.value(forKey: 1) { _ async throws in throw Offline() }
            case .generatingMany: try await cache.values(forKeys: [1]) { _ async throws in throw Offline() }[1]
            }
        }
    }

    enum Writer: CaseIterable {
        case set, subscripted, setInTask, setMany, setManyInTask, update, transaction
        case extend, extendInTask
        case setNil, remove, removeInTask, removeValue, removeValueInTask, removeMany, removeManyInTask, updateToNil
        case removalInTransaction, removeWhere, removeWhereMetadata, clear, clearInTask, clearWithProgress, clearStore
        case trimToCount, trimToSize, diskLimit, sweep, maintenance
        case otherVersion, removeCache
        case connection, connectionsRemoval

        /// What the key has afterwards.
        var left: String? {
            switch self {
            case .set, .subscripted, .setInTask, .setMany, .setManyInTask, .update, .transaction, .connection: "new"
            case .extend, .extendInTask: "old"
            default: nil
            }
        }

        /// Whether the write brings the value into memory, too.
        var isInMemory: Bool { left == "new" && !isUnseen }

        /// Whether the store hears of it by the counter of commits alone.
        var isUnseen: Bool { self == .connection || self == .connectionsRemoval }

        var isEnd: Bool { self == .otherVersion || self == .removeCache }

        func write(_ cache: Cache<Int, String>, _ place: StorePlace) async throws {
            switch self {
            case .setInTask: try await cache.setValue("new", forKey: 1)
            case .setManyInTask: try await cache.setValues([1: "new", 2: "other"])
            case .extendInTask: try await cache.setExtendedData(Data([7]), forKey: 1)
            case .removeInTask: try await cache.remove(1)
            case .removeValueInTask: #expect(try await cache.removeValue(forKey: 1) == "old")
            case .removeManyInTask: try await cache.removeValues(forKeys: [1, 2])
            case .clearInTask: try await cache.removeAll()
            case .trimToSize: #expect(try await cache.trim(toSize: 0) == 1)
            case .connection, .connectionsRemoval:
                var intruder = try Intruder(place.url)
                try intruder.change(
                    self == .connection
                        ? "UPDATE entry SET payload = CAST('new' AS BLOB), size = 3 + ifnull(length(extended), 0), file = NULL"
                        : "DELETE FROM entry")
            default: try writeAtOnce(cache, place)
            }
        }

        private func writeAtOnce(_ cache: Cache<Int, String>, _ place: StorePlace) throws {
            switch self {
            case .set: try cache.setValue("new", forKey: 1)
            case .subscripted: cache[1] = "new"
            case .setMany: try cache.setValues([(1, "new"), (2, "other")])
            case .update: try cache.update(1) { $0 = "new" }
            case .transaction: try cache.manager.transaction { try $0.setValue("new", forKey: 1, in: cache) }
            case .extend: try cache.setExtendedData(Data([7]), forKey: 1)
            case .setNil: cache[1] = nil
            case .remove: try cache.remove(1)
            case .removeValue: #expect(try cache.removeValue(forKey: 1) == "old")
            case .removeMany: try cache.removeValues(forKeys: [1, 2])
            case .updateToNil: try cache.update(1) { $0 = nil }
            case .removalInTransaction: try cache.manager.transaction { try $0.removeValue(forKey: 1, in: cache) }
            case .removeWhere: #expect(try cache.removeAll { $0.value == "old" } == 1)
            case .removeWhereMetadata: #expect(try cache.removeAll { key, _ in key == 1 } == 1)
            case .clear: try cache.removeAll()
            case .clearWithProgress: try cache.clear()
            case .clearStore: try cache.manager.removeAll()
            case .trimToCount: #expect(try cache.trim(toCount: 0) == 1)
            case .diskLimit: try cache.disk.setLimits(DiskLimits(countLimit: 0))
            case .sweep:
                place.time.set(place.time.now + 3601)
                #expect(try cache.removeExpired() == 1)
            case .maintenance:
                place.time.set(place.time.now + 3601)
                #expect(try cache.manager.maintain().expired == 1)
            case .otherVersion:
                let newer: Cache<Int, String> = try cache.manager.cache(named: "a", version: "2", maxAge: .hours(1))
                newer[1] = "new"
                #expect(newer[1] == "new")
            case .removeCache: try cache.manager.removeCache(named: "a")
            default: Issue.record("\(self) is written elsewhere")
            }
        }
    }

    private func cache(_ manager: CacheManager, _ options: CacheOptions) throws -> Cache<Int, String> {
        let (gate, isClosed, arrived) = (gate, isClosed, arrived)
        let codec = ValueCodec<String>(identifier: "gated", encode: { Data($0.utf8) }) { data in
            let isFirst = isClosed.change { isClosed in
                defer { isClosed = false }
                return isClosed
            }
            if isFirst {
                arrived.open()
                gate.block()
            }
            return String(decoding: data, as: UTF8.self)
        }
        return try manager.cache(named: "a", version: "1", maxAge: .hours(1), options: options.steady, codec: codec)
    }

    // case 116, 117, 118
    @Test(arguments: Reader.allCases, Writer.allCases)
    func `what a read found before a write has ended does not come into memory after it`(
        reader: Reader, writer: Writer
    ) async throws {
        let options = CacheOptions(inlineLimit: reader == .ofFile ? 0 : .max)
        do {
            let manager = try place.manager()
            try await self.cache(manager, options).setValue("old", forKey: 1)
            try await manager.close()
        }
        let cache = try self.cache(try place.manager(), options)
        isClosed.change { $0 = true }
        defer { gate.open() }
        let reading = Task { try await reader.read(cache) }
        try await arrived.pass()
        try await writer.write(cache, place)
        gate.open()
        #expect(try await reading.value == "old")

        // After another connection's commit memory may have it, and serves nothing of it before a look at the disk.
        if !writer.isUnseen, !writer.isInMemory { #expect(cache.memory.count == 0) }
        #expect(cache.memory.contains(1) == writer.isInMemory)
        #expect(cache.memory.value(forKey: 1) == (writer.isInMemory ? "new" : nil))
        #expect(try await cache.value(forKey: 1) == writer.left)
        #expect(cache[1] == writer.left)
        #expect(cache.memory[1] == writer.left)
        #expect(try await cache.contains(1) == (writer.left != nil))
        if writer.left == "old" { #expect(try await cache.extendedData(forKey: 1) == Data([7])) }
        if !writer.isEnd { try expectInvariants(cache) }
    }
}
