import Foundation
import LarderTestSupport
import Testing

/// Stores with damage of every kind that has a name.
struct NamedDamageTests {
    /// LARDER_DAMAGE_ROUNDS says another number.
    private static let rounds = ProcessInfo.processInfo.environment["LARDER_DAMAGE_ROUNDS"].flatMap { Int($0) } ?? 216

    // cases 327 to 329
    @Test(.enabled(if: LongTests.areEnabled, "a long test"))
    func `damage of every kind ends quickly, stays local, and gives no wrong value`() throws {
        var random = Seeded()
        let work = try TemporaryFolder()
        let child = try ChildProcess(
            "larder-test-cache", ["damage-by-name", work.url.path, "\(random.next())", "\(Self.rounds)"])
        let (status, lines) = try child.finish()
        for line in lines where line.hasPrefix("problem") || line.hasPrefix("error") {
            Issue.record("seed \(random.seed): \(line.prefix(600))")
        }
        #expect(status == 0, "seed \(random.seed), after \(lines.last ?? "")")
        #expect(lines.count { $0.hasPrefix("begin") } == Self.rounds, "seed \(random.seed)")
        print("damage by name: SEED=\(random.seed), \(lines.last ?? "")")
    }
}
