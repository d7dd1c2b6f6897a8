import Foundation

/// Waits for what another thread, task or process is about to do, and gives up in the end.
///
/// A wait that never ends would hold up the whole run, and nobody would learn which one it is.
package enum Waiting {
    /// Far longer than the slowest machine takes, whose few threads other tests may have for many minutes.
    ///
    /// LARDER_PATIENCE says another number of seconds.
    package static let limit = Duration.seconds(
        ProcessInfo.processInfo.environment["LARDER_PATIENCE"].flatMap { Int($0) } ?? 600)

    /// What was waited for has not come.
    package struct InVain: Error, CustomStringConvertible {
        package let description: String

        fileprivate init(_ file: StaticString, _ line: Int) {
            description = "waited \(Waiting.limit) in vain at \(file):\(line)"
        }
    }

    /// Lets other threads run until something is so.
    package static func until(
        _ file: StaticString = #fileID, _ line: Int = #line, _ isSo: () throws -> Bool
    ) throws {
        let end = ContinuousClock.now + limit
        while try !isSo() {
            guard ContinuousClock.now < end else { throw InVain(file, line) }
            sched_yield()
        }
    }

    /// Lets other tasks run until something is so.
    package static func until(
        _ file: StaticString = #fileID, _ line: Int = #line, _ isSo: () throws -> Bool
    ) async throws {
        let end = ContinuousClock.now + limit
        while try !isSo() {
            guard ContinuousClock.now < end else { throw InVain(file, line) }
            await Task.yield()
        }
    }
}
