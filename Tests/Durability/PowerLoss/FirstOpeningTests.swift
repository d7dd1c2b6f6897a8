import Foundation
import LarderStore
import LarderTestSupport
import Testing

/// Stores whose power was cut while they were opened for the first time.
@Suite(.enabled(if: Strace.isAvailable, "a long test, or strace is missing"))
struct FirstOpeningTests {
    @Test(arguments: [1, 4, 0], [Store.Options.Durability.processCrash, .powerLoss])
    func `whenever the power goes during the first opening, the store opens, and has what it must have`(
        threads: Int, durability: Store.Options.Durability
    ) throws {
        var random = Seeded()
        let (folder, traces) = (try TemporaryFolder(), try TemporaryFolder())
        let said = try ChildProcess(
            "larder-test-rows",
            ["first", "\(durability)", "\(threads)", folder.real("made/store.sqlite").path, "key"],
            through: ["/usr/bin/strace", "-o", traces("trace").path] + FileTrace.arguments
        ).finish().lines
        // Without threads four processes open it.
        #expect(said.count == (threads == 0 ? 4 : threads))
        var disk = SimulatedDisk(folder.realURL, .none)
        var acknowledged: [String] = []
        for (index, call) in try FileTrace(traces("trace")).calls.enumerated() {
            for _ in 0..<(threads == 1 ? 12 : 4) {
                let left = try TemporaryFolder()
                try disk.lose(into: left.realURL, &random)
                let found: [String]
                do {
                    found = try problems(left, durability == .powerLoss ? acknowledged : [])
                } catch {
                    found = ["\(error)"]
                }
                #expect(found == [], "before call \(index), \(call.name), seed \(random.seed)")
                if found != [] { return }
            }
            acknowledged += (call.said ?? "").split(separator: "\n").map(String.init)
            disk.follow(call)
        }
        #expect(disk.strange == [])
    }

    private func problems(_ left: TemporaryFolder, _ acknowledged: [String]) throws -> [String] {
        var options = Store.Options()
        options.time = StoreTime(now: { 1_700_000_000_000 }, wake: { _, _ in {} })
        let store = try Store.open(left("made/store.sqlite").path, options)
        let rows = try store.open(.rows)
        var problems: [String] = []
        for key in acknowledged where try rows.row(.text(key)) == nil { problems.append("\(key) is lost") }
        let entry = EntryWrite(key: .text("new"), payload: Data("new".utf8), writtenAt: 0)
        try rows.run(.put([entry]))
        if try rows.row(.text("new"))?.payload != Data("new".utf8) { problems.append("A put is not read back.") }
        problems += try store.verify().problems
        try store.close()
        return problems
    }
}
