package import Foundation
import Larder
import LarderLocks

/// Everything that makes a log grow, on many threads: single writes, large transactions, large values, clears, and, if
/// asked for, readers that never pause.
package final class Mixture: Sendable {
    /// The rows of a large transaction, and the bytes of each.
    private static let largestTransaction = (rows: 2000, bytes: 1000)

    private let manager: CacheManager
    private let rows: Cache<Int, Data>
    private let files: Cache<Int, Data>
    private let rounds: Int
    private let reads: Bool
    private let writers: Atomic<Int>
    private let failure = Mutex<(any Error)?>(nil)
    private let isOver = Atomic(false)

    package init(_ url: URL, rounds: Int, reads: Bool) throws {
        manager = try CacheManager(url: url, configuration: .patient)
        let options = CacheOptions(memory: .disabled, inlineLimit: 20_000)
        rows = try manager.cache(named: "rows", version: "1", maxAge: .unlimited, options: options)
        files = try manager.cache(named: "files", version: "1", maxAge: .unlimited, options: options)
        self.rounds = rounds
        self.reads = reads
        writers = Atomic(0)
    }

    /// Does it all on threads of its own; ``finish()`` says how that went.
    package func start() {
        Thread.detachNewThread { [self] in
            do {
                try run()
            } catch {
                failure.withLock { $0 = $0 ?? error }
            }
            isOver.store(true, ordering: .sequentiallyConsistent)
        }
    }

    /// Whether all of it is done.
    package var isFinished: Bool { isOver.load(ordering: .sequentiallyConsistent) }

    /// Throws what went wrong first.
    package func finish() throws {
        try Waiting.until { isFinished }
        if let error = failure.withLock({ $0 }) { throw error }
    }

    /// Does it all, and throws what went wrong first.
    package func run() throws {
        let writing: [@Sendable (Int) throws -> Void] = [
            { [self] round in for key in 0..<40 { try rows.setValue(bytes(300, key), forKey: round * 40 + key) } },
            { [self] round in for key in 0..<40 { try rows.setValue(bytes(3000, key), forKey: -round * 7 - key) } },
            { [self] round in
                let (count, size) = Self.largestTransaction
                if round % 4 == 0 { try rows.setValues((0..<count).map { ($0 + round, bytes(size, $0)) }) }
            },
            { [self] round in for key in 0..<4 { try files.setValue(bytes(100_000, round), forKey: key + round % 10) }
            },
            { [self] round in
                for key in 0..<20 { try rows.update(key) { $0 = Data(($0 ?? Data()).prefix(200)) + [UInt8(key)] } }
                if round % 10 == 9 { try rows.removeAll() }
            },
        ]
        writers.store(writing.count, ordering: .sequentiallyConsistent)
        let reading: [@Sendable () throws -> Void] =
            !reads
            ? []
            : [
                { [self] in for key in 0..<200 { _ = try rows.value(forKey: key) } },
                { [self] in for (_, value) in rows.prefix(2000) where value.isEmpty { _ = value } },
                { [self] in for key in 0..<10 { _ = try files.value(forKey: key) } },
            ]
        let group = DispatchGroup()
        for work in writing {
            start(group) { [self] in
                defer { writers.subtract(1, ordering: .sequentiallyConsistent) }
                for round in 0..<rounds { try work(round) }
            }
        }
        for work in reading {
            start(group) { [self] in while writers.load(ordering: .sequentiallyConsistent) > 0 { try work() } }
        }
        guard group.wait(timeout: Waiting.deadline) == .success else { throw Waiting.InVain(#fileID, #line) }
        if let error = failure.withLock({ $0 }) { throw error }
        try manager.close()
    }

    private func start(_ group: DispatchGroup, _ work: @escaping @Sendable () throws -> Void) {
        group.enter()
        Thread.detachNewThread { [self] in
            do {
                try work()
            } catch {
                failure.withLock { $0 = $0 ?? error }
            }
            group.leave()
        }
    }

    private func bytes(_ count: Int, _ number: Int) -> Data {
        Data(repeating: UInt8(truncatingIfNeeded: number), count: count)
    }
}
