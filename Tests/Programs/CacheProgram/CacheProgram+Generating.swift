import Foundation
import Larder
import LarderTestSupport

/// Values that are made in a process of their own.
extension CacheProgram {
    /// For each line, a key and a size: makes a value of that size that nobody else makes, says so, waits for another line
    /// before it is given to be stored, and says what came of it.
    static func generate(_ path: String, mark: UInt8) async throws {
        let manager = try CacheManager(url: URL(fileURLWithPath: path), configuration: .patient)
        let cache: Cache<Int, Data> = try await manager.cache(
            named: "made", version: "1", maxAge: .unlimited, options: CacheOptions(inlineLimit: 1000))
        func words(of entry: CacheEntry<Int, Data>?) -> String {
            guard let entry else { return "nil" }
            let marks = Set(entry.value + (entry.extendedData ?? Data()))
            return "\(entry.value.count) \(marks.sorted()) \(entry.extendedData?.count ?? -1)"
        }
        while let line = readLine() {
            let numbers = line.split(separator: " ").compactMap { Int($0) }
            guard numbers.count == 2 else {
                say(words(of: try await cache.entry(forKey: numbers[0])))
                continue
            }
            let entry = try await cache.entry(forKey: numbers[0]) { _, _ in
                say("making")
                _ = readLine()
                return .value(
                    Data(repeating: mark, count: numbers[1]), extendedData: Data(repeating: mark, count: Int(mark)))
            }
            say(words(of: entry))
        }
        try await manager.close()
    }

    /// Whether a job that blocks its thread keeps all others from running.
    ///
    /// The system looks now and then whether its threads are blocked, and may give one more just then; not every time.
    static func hasOneThread() async -> Bool {
        for _ in 0..<5 where await isHeldUpByAnother() { return true }
        return false
    }

    /// Whether one job does not run while another one blocks its thread.
    private static func isHeldUpByAnother() async -> Bool {
        let signal = DispatchSemaphore(value: 0)
        @Sendable func isBlocked() -> Bool { signal.wait(timeout: .now() + .milliseconds(500)) == .timedOut }
        let first = Task.detached { isBlocked() }
        let second = Task.detached { _ = signal.signal() }
        defer { withExtendedLifetime(second) {} }
        return await first.value
    }
}
