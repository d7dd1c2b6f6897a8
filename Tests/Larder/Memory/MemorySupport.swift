import Foundation
import Larder
import Synchronization

/// A clock that stands still until it is told otherwise.
final class StoppedClock: Sendable {
    private let milliseconds = Mutex<Int64>(1_700_000_000_000)
    private let count = Atomic(0)

    /// How often it was asked.
    var readings: Int { count.load(ordering: .relaxed) }

    func now() -> Date {
        count.add(1, ordering: .relaxed)
        return Date(timeIntervalSince1970: Double(milliseconds.withLock(\.self)) / 1000)
    }

    func advance(milliseconds delta: Int64) {
        milliseconds.withLock { $0 += delta }
    }
}

/// A value whose release runs code.
final class Releasing: Sendable {
    private let onRelease: @Sendable () -> Void

    init(_ onRelease: @escaping @Sendable () -> Void) {
        self.onRelease = onRelease
    }

    deinit { onRelease() }
}

/// A key whose hashes are all equal, and which counts its comparisons.
struct CollidingKey: Hashable, Sendable {
    static let comparisons = Atomic(0)
    let number: Int

    static func == (left: Self, right: Self) -> Bool {
        comparisons.add(1, ordering: .relaxed)
        return left.number == right.number
    }

    func hash(into hasher: inout Hasher) {}
}
