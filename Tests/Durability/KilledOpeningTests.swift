import Foundation
import Larder
import LarderTestSupport
import Testing

/// Processes that are killed while they make, open and write stores.
struct KilledOpeningTests {
    @Test func `whatever moment a process dies at, the store opens with all that was acknowledged`() throws {
        var random = Seeded()
        let seed = random.seed
        let folder = try TemporaryFolder()
        let rounds = 60
        var total = 0
        for round in 0..<rounds {
            let child = try ChildProcess("larder-test-store", ["make-many", folder.url.path, "\(round)"])
            // Dies at some place in the work that follows this many reports.
            var reported: [String] = []
            for _ in 0..<Int.random(in: 1...12, using: &random) {
                if let line = child.line() { reported.append(line) }
            }
            child.kill()
            while let line = child.line() { reported.append(line) }
            for line in reported {
                let words = line.split(separator: " ")
                guard words.count == 2, let rows = Int(words[1]) else { continue }
                total += 1
                let count = try CacheManager.rowCount(at: folder(String(words[0])))
                #expect(count >= rows, "seed \(seed), round \(round), \(line)")
            }
            for name in try folder.names {
                #expect(!name.contains("corrupt"), "seed \(seed), round \(round)")
                // Unfinished ones open too.
                if name.hasSuffix(".sqlite") { _ = try CacheManager.rowCount(at: folder(name)) }
            }
            for name in try folder.names { try FileManager.default.removeItem(at: folder(name)) }
        }
        // Each round waits for one report at least.
        #expect(total >= rounds, "seed \(seed)")
    }
}
