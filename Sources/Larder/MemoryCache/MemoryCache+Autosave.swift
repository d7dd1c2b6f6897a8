public import Foundation
internal import LarderLocks

extension MemoryCache where Key: Codable, Value: Codable {
    /// Writes a snapshot in the background whenever something has changed, at most once an interval.
    ///
    /// The file is replaced in one step, as by `save(to:)`. If the cache has neither loaded nor saved this file before, its
    /// entries are added first, without those of keys that have a value here: so an autosave that begins before a restore loses
    /// nothing. A file that is no snapshot of these types is never overwritten. A save that fails is written to
    /// ``LogMessage/standardLog``, and tried again after an interval.
    ///
    /// Changes of the last interval are lost when the program ends, unless it calls ``AutosaveTask/saveNow()``.
    ///
    /// - Parameters:
    ///   - url: The file.
    ///   - interval: The minimum time between two saves, at least a millisecond.
    /// - Returns: The task, which keeps the cache alive, and ends when it is cancelled or released.
    public func autosave(to url: URL, every interval: Duration) -> AutosaveTask {
        state.withLock { $0.isFollowed = true }
        let stream = ChangeStream<Key, Value>(every: Swift.max(interval, .milliseconds(1)), timekeeper: timekeeper) {
            _ in [:]
        }
        let subscription = hub.subscribe(stream)
        let autosave = Autosave { () throws(CacheError) in
            try self.addSaved(url)
            try self.save(to: url)
        }
        do throws(CacheError) { try addSaved(url) } catch { autosave.report(error) }
        let task = Task {
            while await subscription.stream.next() != nil {
                do throws(CacheError) {
                    try await offload { () throws(CacheError) in try autosave.save() }
                } catch {
                    autosave.report(error)
                    // What cannot be encoded is as it was at the next try.
                    if error.code != .encodingFailed { _ = subscription.stream.noteReset() }
                }
            }
        }
        return AutosaveTask { () throws(CacheError) in
            try autosave.save()
        } cancel: {
            stream.cancel()
            task.cancel()
        }
    }

    /// Adds the entries of a snapshot whose keys have no value, unless the cache has loaded or saved this file before.
    private func addSaved(_ url: URL) throws(CacheError) {
        if knownSnapshots.withLock({ $0.contains(url.path) }) { return }
        try loadIfPresent(from: url, replaces: false) { LogMessage.standardLog(LogMessage(.warning, $0)) }
    }
}

/// The saves of an autosave, one at a time.
private final class Autosave: Sendable {
    private let lock = Mutex(())
    private let body: @Sendable () throws(CacheError) -> Void

    init(_ body: @escaping @Sendable () throws(CacheError) -> Void) { self.body = body }

    func save() throws(CacheError) {
        try lock.withLock { _ throws(CacheError) in try body() }
    }

    func report(_ error: CacheError) { LogMessage.standardLog(LogMessage(.error, error.message, error: error)) }
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
