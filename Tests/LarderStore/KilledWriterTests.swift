import Foundation
import LarderStore
import LarderTestSupport
import Testing

struct KilledWriterTests {
    /// The changes are a function of the seed, so the parent knows what the program had acknowledged when it was killed.
    @Test func `a process that is killed at any moment leaves all acknowledged changes, and none by half`() throws {
        let place = try StorePlace()
        var random = Seeded()
        var (done, model) = (0, RowsModel(seed: random.seed))
        for round in 0..<(LongTests.areEnabled ? 200 : 20) {
            let child = try ChildProcess("larder-test-rows", ["change", "\(random.seed)", "\(done)", place.path])
            let acknowledged = try child.kill(after: .random(in: 1...40, using: &random))
            model.advance(to: acknowledged)
            let store = try place.open()
            let rows = try store.open(.rows)
            // The change after the last acknowledged one may be there too.
            if try state(of: rows) != model.entries {
                model.advance(to: acknowledged + 1)
                #expect(try state(of: rows) == model.entries, "round \(round), seed \(random.seed)")
            }
            done = model.count
            #expect(try rows.totals().count == model.entries.count)
            try store.close()
        }
        #expect(done > 20)
    }

    /// A file may have 300 KB in the program, so the COMMIT of a batch fails, and of its requests the large one.
    @Test(.enabled(if: !ChildProcess.isSanitized, "a sanitizer needs larger files"))
    func `a COMMIT that fails is a failure of the request that is too large, and of no other`() throws {
        let place = try StorePlace()
        let lines = try ChildProcess(
            "larder-test-rows", ["exceed", place.path],
            through: ["bash", "-c", "trap '' XFSZ; ulimit -f 300; exec \"$@\"", "bash"]
        ).finish().lines
        #expect(lines == ["small true large false", "after true"])
        let rows = try place.open().open(.rows)
        #expect(try rows.row(.integer(1)) != nil && rows.row(.integer(2)) == nil && rows.row(.integer(3)) != nil)
        #expect(try rows.totals() == Totals(count: 2, size: 200))
    }

    @Test(.enabled(if: !ChildProcess.isSanitized, "a sanitizer needs larger files"))
    func `a log that cannot be copied is reported once, and again when it can be`() throws {
        let place = try StorePlace()
        let lines = try ChildProcess("larder-test-rows", ["uncopied", place.path]).finish().lines
        #expect(lines == ["not copied", "written", "copied", "true"])
    }

    private func state(of rows: CacheRows) throws -> [Int64: String] {
        var found: [Int64: String] = [:]
        for key in 0..<RowsModel.keys { found[key] = try rows.text(key) }
        return found
    }
}

extension ChildProcess {
    /// Kills a program that prints numbers after so many of them, and returns the last one that it printed.
    func kill(after count: Int) throws -> Int {
        var last = 0
        for _ in 0..<count {
            let line = try #require(self.line())
            last = try #require(Int(line))
        }
        kill()
        while let line = self.line() { last = Int(line) ?? last }
        return last
    }
}
