import Dispatch
import Foundation

/// Waits for a change by another thread, task or process, and fails in the end.
///
/// A wait that never ends would block the whole run, without a sign of which one it is.
package enum Waiting {
    /// Far longer than the slowest machine takes, and far shorter than the limit of the whole run.
    ///
    /// LARDER_PATIENCE sets another number of seconds.
    package static let limit = Duration.seconds(
        ProcessInfo.processInfo.environment["LARDER_PATIENCE"].flatMap { Int($0) } ?? 120)

    /// The moment at which a wait that begins now fails.
    static var deadline: DispatchTime { .now() + .seconds(Int(limit.components.seconds)) }

    /// The expected change has not come.
    package struct InVain: Error, CustomStringConvertible {
        package let description: String

        init(_ file: StaticString, _ line: Int) {
            description = "waited \(Waiting.limit) in vain at \(file):\(line)"
        }
    }

    /// Blocks the thread until `isSo` returns true.
    package static func until(
        _ file: StaticString = #fileID, _ line: Int = #line, _ isSo: () throws -> Bool
    ) throws {
        let end = ContinuousClock.now + limit
        var looks = 0
        while try !isSo() {
            guard ContinuousClock.now < end else { throw InVain(file, line) }
            looks += 1
            // The first looks follow each other at once. The later ones leave the processor to what they wait for.
            if looks < 100 { sched_yield() } else { Thread.sleep(forTimeInterval: 0.001) }
        }
    }

    /// Suspends the task until `isSo` returns true.
    package static func until(
        _ file: StaticString = #fileID, _ line: Int = #line, isolation: isolated (any Actor)? = #isolation,
        _ isSo: () throws -> Bool
    ) async throws {
        let end = ContinuousClock.now + limit
        var looks = 0
        while try !isSo() {
            guard ContinuousClock.now < end else { throw InVain(file, line) }
            looks += 1
            if looks < 100 { await Task.yield() } else { try await Task.sleep(for: .milliseconds(1)) }
        }
    }

    /// Suspends the task until what is asked elsewhere says yes.
    package static func asking(
        _ file: StaticString = #fileID, _ line: Int = #line, isolation: isolated (any Actor)? = #isolation,
        _ isSo: () async throws -> Bool
    ) async throws {
        let end = ContinuousClock.now + limit
        while try await !isSo() {
            guard ContinuousClock.now < end else { throw InVain(file, line) }
            try await Task.sleep(for: .milliseconds(1))
        }
    }
}
