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

        /// Whether the call throws, where a call that gives several leaves the value out.
        var isThrowing: Bool { ![.values, .iteration, .ordered].contains(self) }

        /// The keys that it meets; a pass meets both.
        var keys: [Int] { [.iteration, .ordered].contains(self) ? [1, 2] : [1] }
    }

    /// What came of it, which must not depend on where the bytes are.
    private struct Outcome: Equatable {
        /// What the call came to.
        var call = ""
        var events: Set<String> = []
    }

    private func meet(_ meeting: Meeting, _ policy: UndecodablePolicy, inline: Int) async throws -> Outcome {
        let place = try TemporaryStore(of: #fileID)
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
        do {
            if meeting == .asyncValue {
                outcome.call = "\(try await cache.value(forKey: 1) as New?)"
            } else {
                outcome.call = try Self.read(meeting, cache)
            }
        } catch let error as CacheError {
            outcome.call = "\(error.code) \(error.message.contains("\"a\"") && error.message.contains("1"))"
        }
        cache[3] = New(name: "3", year: 3)
        // A file goes with its row, and stays with it.
        let left = policy == .keep ? 3 : 3 - meeting.keys.count
        try await Waiting.until { try StoreProbe(manager).rows(ofCache: "a").count == left }
        try await Waiting.until { try place.spilledFiles().count == (inline == 0 ? left : 0) }
        cache[1] = New(name: "1", year: 1)
        #expect(cache[1] == New(name: "1", year: 1))
        try await manager.close()
        for await event in events { outcome.events.insert("\(event.kind) \(event.key ?? "")") }
        return outcome
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

    @Test(arguments: Meeting.allCases, [UndecodablePolicy.drop, .keep])
    func `a file that does not decode is as a row that does not, whichever call meets it first`(
        meeting: Meeting, policy: UndecodablePolicy
    ) async throws {
        let file = try await meet(meeting, policy, inline: 0)
        #expect(try await file == meet(meeting, policy, inline: .max))
        #expect((meeting.isThrowing ? ["undecodable true"] : ["[:]", "[]"]).contains(file.call), "\(file.call)")
        #expect(file.events == Set(meeting.keys.map { "undecodable \($0)" }))
    }
}
