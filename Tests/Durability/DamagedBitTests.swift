import Foundation
import Larder
import LarderTestSupport
import Testing

/// Stores in which bits have flipped.
struct DamagedBitTests {
    private static let rounds = 60

    // case 72, 284, 289
    @Test(.enabled(if: LongTests.areEnabled, "a long test"))
    func `whichever bits flip, no read gives what was not stored, and nothing crashes, hangs or leaks`() throws {
        var random = Seeded()
        print("damaged bits: SEED=\(random.seed)")
        let (source, work) = (try TemporaryFolder(), try TemporaryFolder())
        let maker = try ChildProcess("larder-test-cache", ["make-for-damage", source("store.sqlite").path])
        #expect(maker.line() == "made")
        maker.kill()
        let child = try ChildProcess(
            "larder-test-cache",
            ["damage", source.url.path, work.url.path, "\(random.next())", "\(Self.rounds)"])
        let (status, lines) = try child.finish()
        for line in lines where line.hasPrefix("problem") || line.hasPrefix("error") {
            Issue.record("seed \(random.seed): \(line)")
        }
        #expect(status == 0, "seed \(random.seed), after \(lines.last ?? "")")
        print(lines.last ?? "")
        let marked = (lines.last ?? "").split(separator: " ").compactMap { Int($0) }
        // Of the database most bits mean nothing, but that of the first round; of the files each one means something.
        #expect(marked.count == 3 && marked[0] > 0, "seed \(random.seed), \(lines.last ?? "")")
        #expect(marked.last == Self.rounds / 3, "seed \(random.seed), \(lines.last ?? "")")
        #expect(lines.count { $0.hasPrefix("begin") } == Self.rounds, "seed \(random.seed)")
    }
}
