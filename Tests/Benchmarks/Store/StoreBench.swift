import Dispatch
import Foundation
import LarderStore

/// Measures the store without types beside raw SQLite: `make bench-store`.
///
/// 100,000 rows of 300 bytes, inserted in random order. Every value differs. Samples of both are taken in turn, and a ratio is
/// the median of the ratios of the rounds.
@main
enum StoreBench {
    static let count = 100_000

    static func main() async throws {
        let rounds = CommandLine.arguments.count > 1 ? Int(CommandLine.arguments[1]) ?? 7 : 7
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("larder-bench-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { do { try FileManager.default.removeItem(at: folder) } catch { print(error) } }
        let bench = try Subjects(folder)
        print("scenario".padding(toLength: 32, withPad: " ", startingAt: 0) + "   raw us  store us   ratio   goal")
        // A second argument chooses scenarios by the beginning of their names.
        let chosen = CommandLine.arguments.dropFirst(2).first ?? ""
        // A third argument leaves the other subject out, for a profile.
        let only = CommandLine.arguments.dropFirst(3).first
        for scenario in Scenario.all where scenario.name.hasPrefix(chosen) {
            var samples: [(raw: Double, store: Double)] = []
            for _ in 0..<rounds {
                bench.prepare(scenario.keys)
                if scenario.addsKeys { try bench.addNewKeys() }
                let raw = try await time(scenario.keys, bench) { if only != "store" { try await scenario.raw(bench) } }
                let store = try await time(scenario.keys, bench) {
                    if only != "raw" { try await scenario.store(bench) }
                }
                samples.append((raw, store))
                if scenario.empties { try bench.fill() } else if !scenario.addsNothing { try bench.settle() }
            }
            let ratio = median(samples.map { $0.store / $0.raw })
            print(
                scenario.name.padding(toLength: 32, withPad: " ", startingAt: 0)
                    + String(
                        format: "%9.2f %9.2f %7.2f %6.2f", median(samples.map(\.raw)), median(samples.map(\.store)),
                        ratio, scenario.goal))
        }
    }

    /// Returns the microseconds of an operation: of the parts that the body measures, or of all of it.
    private static func time(
        _ operations: Int, _ bench: Subjects, _ body: @Sendable () async throws -> Void
    ) async throws -> Double {
        bench.measured = 0
        let start = DispatchTime.now().uptimeNanoseconds
        try await body()
        let all = DispatchTime.now().uptimeNanoseconds - start
        return Double(bench.measured > 0 ? bench.measured : all) / 1000 / Double(operations)
    }

    private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
}

/// Both stores, and the keys and values of a sample.
final class Subjects: @unchecked Sendable {
    // Safety: a sample is prepared by one thread, and only read by those that it starts.
    let raw: Raw
    /// A second connection, which only reads.
    let rawReader: Raw
    let store: Store
    let rows: CacheRows
    private let folder: URL
    /// The subjects of the file scenarios, the first of which creates them.
    private(set) lazy var files: Result<FileSubjects, any Error> = Result { try FileSubjects(folder, self) }
    private(set) lazy var used: Result<UsedSubjects, any Error> = Result { try UsedSubjects(folder) }
    private var generator = SystemRandomNumberGenerator()
    private var edition: UInt64 = 0
    /// Keys that are there.
    private var present: [Int64] = []
    private(set) var newKeys: [Int64] = []
    private(set) var oldKeys: [Int64] = []
    private(set) var readKeys: [Int64] = []
    private(set) var hotKeys: [Int64] = []
    /// The nanoseconds of the parts that were measured alone.
    var measured: UInt64 = 0

    func measure(_ body: () throws -> Void) rethrows {
        let start = DispatchTime.now().uptimeNanoseconds
        try body()
        measured += DispatchTime.now().uptimeNanoseconds - start
    }

    init(_ folder: URL) throws {
        self.folder = folder
        raw = Raw(folder.appendingPathComponent("raw.sqlite").path)
        rawReader = Raw(folder.appendingPathComponent("raw.sqlite").path, isNew: false)
        store = try Store.open(folder.appendingPathComponent("store.sqlite").path)
        rows = try store.open(CacheDeclaration(name: "a", version: "1", codec: "data", ageRule: .unlimited))
        try fill()
    }

    /// Fills both with rows.
    func fill() throws {
        present = (0..<StoreBench.count).map { _ in newKey() }
        for start in stride(from: 0, to: present.count, by: 1000) {
            let keys = present[start..<start + 1000]
            raw.transaction { for key in keys { raw.set(key, value()) } }
            try rows.run(.put(keys.map(write), if: .always))
        }
    }

    private func newKey() -> Int64 { Int64.random(in: 0 ... .max, using: &generator) }

    /// A value, each time another one.
    func value(_ count: Int = 300) -> Data {
        edition &+= 0x9E37_79B9_7F4A_7C15
        var data = Data(count: count)
        data.withUnsafeMutableBytes { bytes in
            for place in stride(from: 0, to: count - 7, by: 8) {
                bytes.storeBytes(of: edition &* UInt64(place + 1), toByteOffset: place, as: UInt64.self)
            }
        }
        return data
    }

    func write(_ key: Int64) -> EntryWrite {
        EntryWrite(key: .integer(key), payload: value(), writtenAt: store.time.now())
    }

    func prepare(_ count: Int) {
        newKeys = (0..<count).map { _ in newKey() }
        oldKeys = (0..<count).map { _ in present.randomElement(using: &generator) ?? 0 }
        readKeys = (0..<20_000).map { _ in present.randomElement(using: &generator) ?? 0 }
        let few = (0..<2000).map { _ in present.randomElement(using: &generator) ?? 0 }
        hotKeys = (0..<20_000).map { _ in few.randomElement(using: &generator) ?? 0 }
    }

    /// Removes what a sample has added.
    func settle() throws {
        raw.transaction { for key in newKeys { raw.remove(key) } }
        try rows.run(.remove(newKeys.map(StoredKey.integer)))
    }

    func addNewKeys() throws {
        raw.transaction { for key in newKeys { raw.set(key, value()) } }
        try rows.run(.put(newKeys.map(write), if: .always))
    }
}
