public import Foundation
public import Larder
internal import LarderLocks
internal import LarderStore

/// A store in a folder of its own, which is deleted with this object.
///
/// ```swift
/// let store = try TemporaryStore()
/// let manager = try store.manager()
/// store.clock.advance(by: .seconds(3600))
/// ```
///
/// Each test can have its own, in parallel with others. The folder goes with this object and its managers.
public final class TemporaryStore: Sendable {
    /// The clock of the managers.
    public let clock: ManualClock

    package let folder: TemporaryFolder
    private let managers = Mutex<[WeakManager]>([])

    private struct WeakManager: Sendable { weak var manager: CacheManager? }

    /// Creates a folder for a store.
    ///
    /// - Parameter clock: The clock of the managers.
    public convenience init(clock: ManualClock = ManualClock()) throws {
        self.init(clock, try TemporaryFolder(isLinked: false))
    }

    package init(_ clock: ManualClock, _ folder: TemporaryFolder) { (self.clock, self.folder) = (clock, folder) }

    /// The file of the store.
    public var url: URL { folder("store.sqlite") }

    /// Opens the store on the clock.
    ///
    /// The manager does no upkeep alone. Each call opens another one, which stands for another process: it has its own
    /// memory, and sees what the others commit.
    ///
    /// - Parameter change: Changes the configuration.
    /// - Returns: The manager.
    public func manager(
        _ change: (inout CacheManager.Configuration) -> Void = { _ in }
    ) throws(CacheError) -> CacheManager {
        var configuration = clock.configuration
        // The folder stays until the manager is gone too.
        configuration.schedule = { self.clock.fire($0, after: $1) }
        change(&configuration)
        let manager = try CacheManager(url: url, configuration: configuration)
        managers.withLock { $0 = $0.filter { $0.manager != nil } + [WeakManager(manager: manager)] }
        return manager
    }

    /// Closes all managers, and opens the store as the next start of the program does.
    ///
    /// - Parameter change: Changes the configuration.
    /// - Returns: The manager.
    public func reopen(
        _ change: (inout CacheManager.Configuration) -> Void = { _ in }
    ) throws(CacheError) -> CacheManager {
        for manager in openManagers { try manager.close() }
        return try manager(change)
    }

    /// The managers that are neither closed nor released.
    var openManagers: [CacheManager] {
        managers.withLock { $0.compactMap(\.manager) }.filter { !$0.store.isClosed }
    }
}
