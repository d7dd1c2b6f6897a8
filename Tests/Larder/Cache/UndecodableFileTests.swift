import Foundation
import Larder
import LarderTestSupport
import Testing

/// Values in files whose bytes are whole and do not decode: whichever call meets one first, it is as with values in rows.
struct UndecodableFileTests {
    private struct Old: Codable, Equatable { var name: String }
    private struct New: Codable, Equatable { var name: String; var year: Int }

    enum Meeting: CaseIterable {
        case value, asyncValue, entry, transaction, disk, values, iteration, ordered

        /// Whether the first meeting throws, where a call that gives several leaves the value out.
        var isThrowing: Bool { ![.values, .iteration, .ordered].contains(self) }
    }

    /// What came of it, which must not depend on where the bytes are.
    private struct Outcome: Equatable {
        /// What the first call and the same call again came to.
        var calls: [String] = []
        var events: [String] = []
        var failures = 0
        var rowsAfterWrite = 0
    }

    private func meet(_ meeting: Meeting, _ policy: UndecodablePolicy, inline: Int) async throws -> Outcome {
        let place = try StorePlace()
        let options = CacheOptions(memory: .disabled, inlineLimit: inline, undecodable: policy)
        do {
            let manager = try place.manager()
            let old: Cache<Int, Old> = try await manager.cache(
                named: "a", version: "1", maxAge: .unlimited, options: options)
            for key in 1...2 { old[key] = Old(name: "\(key)") }
            try await manager.close()
        }
        #expect(try place.spilledFiles().count == (inline == 0 ? 2 : 0))
        let manager = try place.manager()
        let cache: Cache<Int, New> = try await manager.cache(
            named: "a", version: "1", maxAge: .unlimited, options: options)
        let events = manager.events
        var outcome = Outcome()
        for _ in 0..<2 {
            do {
                let isAsync = meeting == .asyncValue
                outcome.calls.append(
                    isAsync ? "\(try await cache.value(forKey: 1) as New?)" : try Self.read(meeting, cache))
            } catch let error as CacheError {
                outcome.calls.append("\(error.code) \(error.message.contains("\"a\"") && error.message.contains("1"))")
            }
        }
        try expectAbsent(cache)
        outcome.failures = cache.statistics.failures
        cache[3] = New(name: "3", year: 3)
        outcome.rowsAfterWrite = try RawRows(manager.store(), cacheNamed: "a").count
        // A file goes with its row, and stays with it.
        #expect(try place.spilledFiles().count == (inline == 0 ? outcome.rowsAfterWrite : 0))
        cache[1] = New(name: "1", year: 1)
        #expect(cache[1] == New(name: "1", year: 1))
        try await manager.close()
        for await event in events { outcome.events.append("\(event.kind) \(event.key ?? "")") }
        return outcome
    }

    private func expectAbsent(_ cache: Cache<Int, New>) throws {
        #expect(try !cache.contains(1) && cache.metadata(forKey: 1) == nil && cache.entry(forKey: 1) == nil)
        #expect(try cache.value(forKey: 1) == nil && cache.values(forKeys: [1]) == [:])
    }

    private static func read(_ meeting: Meeting, _ cache: Cache<Int, New>) throws -> String {
        switch meeting {
        case .value, .asyncValue: "\(try cache.value(forKey: 1) as New?)"
        case .entry: "\(try cache.entry(forKey: 1)?.value as New?)"
        case .transaction: "\(try transactionValue(cache) as New?)"
        case .disk: "\(try cache.disk.value(forKey: 1) as New?)"
        case .values: "\(try cache.values(forKeys: [1]))"
        case .iteration: "\(cache.prefix(1).map(\.key))"
        case .ordered: "\(cache.entries(orderedBy: .written).map(\.key))"
        }
    }

    private static func transactionValue(_ cache: Cache<Int, New>) throws -> New? {
        try cache.manager.transaction { try $0.value(forKey: 1, in: cache) }
    }

    // case 193, 194, 197, 212
    @Test(arguments: Meeting.allCases, [UndecodablePolicy.drop, .keep])
    func `a file that does not decode is as a row that does not, whichever call meets it first`(
        meeting: Meeting, policy: UndecodablePolicy
    ) async throws {
        let file = try await meet(meeting, policy, inline: 0)
        #expect(try await file == meet(meeting, policy, inline: .max))
        #expect(file.calls.first == (meeting.isThrowing ? "undecodable true" : file.calls.last))
        #expect(["nil", "[:]", "[]"].contains(file.calls.last), "\(file.calls)")
        // A pass meets both.
        let met = [.iteration, .ordered].contains(meeting) ? [1, 2] : [1]
        #expect(file.events == met.map { "undecodable \($0)" })
        #expect(file.failures == met.count)
        #expect(file.rowsAfterWrite == (policy == .keep ? 3 : 3 - met.count))
    }
}
