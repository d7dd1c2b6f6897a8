public import Foundation
internal import LarderLocks

extension MemoryCache where Key: Codable, Value: Codable {
    /// Writes a snapshot in the background after an interval, and then whenever something has changed, at most once an interval.
    ///
    /// The file is replaced in one step, as by `save(to:)`. If the cache has neither loaded nor saved this file before, the call
    /// first adds the entries of the file, without those whose keys have a value here, and those for which there is no room: so
    /// an autosave that begins before a restore loses nothing. If the file cannot be read, or is no snapshot of these types, it
    /// is not overwritten: each save fails until it is deleted. A save that fails is written to ``LogMessage/standardLog``, and
    /// tried again after an interval.
    ///
    /// Changes of the last interval are lost when the program ends, unless it calls ``AutosaveTask/saveNow()``.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - interval: The minimum time between two saves, at least a millisecond.
    /// - Returns: The task, which keeps the cache alive, and ends when it is cancelled or released.
    public func autosave(to url: URL, every interval: Duration) -> AutosaveTask {
        state.withLock { $0.isFollowed = true }
        let stream = ChangeStream<Key, Value>(
            every: Swift.max(interval, .milliseconds(1)), delaysFirst: true, timekeeper: timekeeper
        ) { _ in [:] }
        let subscription = hub.subscribe(stream)
        let obstacle = addSaved(url)
        let save: @Sendable () throws(CacheError) -> Void = { () throws(CacheError) in
            if let obstacle, SnapshotFile.mayExist(url), !self.knows(url) { throw obstacle }
            try self.save(to: url)
        }
        let task = Task {
            while await subscription.stream.next() != nil {
                do throws(CacheError) {
                    try await offload(save)
                } catch {
                    LogMessage.standardLog(LogMessage(.error, error.message, error: error))
                    // What cannot be encoded is as it was at the next try.
                    if error.code != .encodingFailed { _ = subscription.stream.noteReset() }
                }
            }
        }
        // What is there now is a change since the last save, if there was one.
        _ = stream.noteReset()
        return AutosaveTask(save: save) {
            stream.cancel()
            task.cancel()
        }
    }

    /// Adds the entries of a snapshot that displace nothing, unless the cache has loaded or saved this file before.
    ///
    /// - Returns: The reason for which the file must not be overwritten.
    private func addSaved(_ url: URL) -> CacheError? {
        if knows(url) { return nil }
        do throws(CacheError) {
            try loadIfPresent(from: url, replaces: false) { LogMessage.standardLog(LogMessage(.warning, $0)) }
            return nil
        } catch {
            return error
        }
    }

    private func knows(_ url: URL) -> Bool { snapshots.withLock { $0[SnapshotFile.path(of: url)] != nil } }
}

/// The saves of a memory cache in the background, until the task is cancelled or released.
public final class AutosaveTask: Sendable {
    private let save: @Sendable () throws(CacheError) -> Void
    private let end: @Sendable () -> Void

    init(save: @escaping @Sendable () throws(CacheError) -> Void, cancel: @escaping @Sendable () -> Void) {
        (self.save, end) = (save, cancel)
    }

    deinit { end() }

    /// Saves on this thread, whether something has changed or not; for a program that ends.
    public func saveNow() throws(CacheError) { try save() }

    /// Ends the saves in the background.
    ///
    /// One that is running finishes.
    public func cancel() { end() }
}
