internal import Foundation
internal import LarderLocks
internal import LarderStore

/// Reports events that no caller asked for, for the caches that a manager opened.
final class Reporter: Sendable {
    let hub: EventHub
    /// The program's log; nil for the standard one, which hears warnings and errors.
    private let log: (@Sendable (LogMessage) -> Void)?
    private let noted = Mutex<Set<String>>([])
    /// The key under which a thread knows that it is inside the log closure of this reporter.
    private var mark: String { "larder.log.\(ObjectIdentifier(self).hashValue)" }

    init(hub: EventHub, log: (@Sendable (LogMessage) -> Void)?) {
        self.hub = hub
        self.log = log
    }

    /// A Boolean value that indicates whether the program hears of what is no warning and no error.
    var isHeard: Bool { log != nil || hub.hasListeners }

    func report(_ event: CacheEvent, _ level: LogMessage.Level, error: CacheError? = nil) {
        report(event, level, error: error, text: event.message)
    }

    /// Sends an event, and writes another text to the log, or nothing.
    func report(_ event: CacheEvent, _ level: LogMessage.Level, error: CacheError?, text: String?) {
        if let text { note(LogMessage(level, text, error: error)) }
        hub.send(event)
    }

    /// Writes a message to the log unless it was written this way before.
    func noteOnce(_ message: LogMessage) {
        if noted.withLock({ $0.insert(message.text).inserted }) { note(message) }
    }

    /// Writes to the log, except from inside the log closure: its own failing writes would be reported without end.
    func note(_ message: LogMessage) {
        guard let log else { return LogMessage.standardLog(message) }
        let (thread, mark) = (Thread.current.threadDictionary, mark)
        if thread[mark] != nil { return }
        thread[mark] = true
        log(message)
        thread[mark] = nil
    }
}

extension Reporter {
    /// Reports what the store has noticed.
    func report(_ event: StoreEvent) {
        switch event {
        case .replaced(let salvage):
            let text =
                "The database was damaged or of a later release, and was replaced. \(salvage.kept) entries were carried over,"
                + " \(salvage.lost) were lost. The original is at \(salvage.path)."
            report(CacheEvent(.recovered(setAside: URL(fileURLWithPath: salvage.path)), message: text), .warning)
        case .primed(let path):
            let text = "The store begins as a copy of \(path)."
            report(CacheEvent(.primed(URL(fileURLWithPath: path)), message: text), .info)
        case .notPrimed(let path, let error):
            let text = "The store begins empty, because the one that it should copy cannot be used. \(error.message)"
            report(CacheEvent(.notPrimed(URL(fileURLWithPath: path)), message: text), .warning)
        case .purged(let cache, let version, let newVersion):
            let (version, newVersion) = (CacheVersion(version), CacheVersion(newVersion))
            let reason =
                version == newVersion
                ? "was opened with another codec under version \"\(version)\""
                : "was written under version \"\(version)\" and opened under version \"\(newVersion)\""
            let text = "The cache \"\(cache)\" \(reason), so its entries were purged."
            report(CacheEvent(.purged(version: version), cacheName: cache, message: text), .info)
        case .migrated(let result): report(MigrationReport(result))
        case .superseded(let cache, let version):
            let version = CacheVersion(version)
            let text =
                "A handle on the cache \"\(cache)\" under version \"\(version)\" finds nothing any more: the cache was opened"
                + " under another version or codec, or removed. Open it under its newest version."
            report(CacheEvent(.superseded(version: version), cacheName: cache, message: text), .warning)
        case .removed(let rows, let cache):
            if isHeard { for row in rows { report(row, of: cache) } }
        case .limitUnmet(let cache):
            let owner = cache.map { "The cache \"\($0)\"" } ?? "The store"
            let text =
                "\(owner) exceeds its limits on disk, and what is left is pinned. Unpin entries or raise the limits."
            report(CacheEvent(.limitReached, cacheName: cache, message: text), .warning)
        case .upkeepFailed(let error):
            let text = "The maintenance of the store has failed, and is tried again. \(error.message)"
            report(CacheEvent(.writeFailed, message: text), .error, error: CacheError(error, "be maintained"))
        case .logNotCopied(let error):
            let text =
                "The log of the store cannot be copied into the database, and grows until it can. \(error.message)"
            report(CacheEvent(.writeFailed, message: text), .error, error: CacheError(error, "copy the log"))
        case .logCopied:
            note(LogMessage(.info, "The log of the store can be copied into the database again."))
        case .unwatched:
            note(
                LogMessage(
                    .warning,
                    "The system does not let the store look at the index of its log. So each read asks the file for commits,"
                        + " and values in memory are compared with their rows. That is correct, and slower."))
        case .damagedEntry(let cache, let key):
            let text = "The entry of key \"\(key.name)\" in the cache \"\(cache)\" is damaged, and is deleted."
            report(CacheEvent(.corruptEntry, cacheName: cache, key: key.name, message: text), .warning)
        }
    }

    /// Reports that the store has removed a row.
    private func report(_ row: RemovedRow, of cache: String) {
        let (kind, verb): (CacheEvent.Kind, String)
        switch row.cause {
        case .expired: (kind, verb) = (.expired, "has expired")
        case .evicted(.count): (kind, verb) = (.evicted(.count), "was evicted, because there were too many entries")
        case .evicted(.size): (kind, verb) = (.evicted(.size), "was evicted, because the entries had too many bytes")
        case .evicted(.space): (kind, verb) = (.evicted(.freeSpace), "was evicted, because the disk was short of space")
        case .decided: (kind, verb) = (.evicted(.decider), "was evicted, because a closure of the program chose it")
        case .removed, .tagged, .damaged, .undecodable: return
        }
        let text = "The entry of key \"\(row.key.name)\" in the cache \"\(cache)\" \(verb)."
        report(CacheEvent(kind, cacheName: cache, key: row.key.name, message: text), .debug)
    }
}

/// The failures of a handle, so that the log has a line for each cause, and then only how often it has come.
///
/// A view that reads a closed cache for each frame would else fill the log.
final class RepeatedFailures: Sendable {
    private let counts = Mutex<[CacheError.Code: Int]>([:])

    /// Counts a failure, and returns the text for the log; nil if it has no line.
    ///
    /// What concerns a single entry has a line each time, and a suspension has one for all caches. Anything else has one the first time, the tenth, the hundredth and
    /// so on.
    func text(for error: CacheError, _ message: String) -> String? {
        if [.tooLarge, .encodingFailed, .undecodable, .suspended].contains(error.code) { return message }
        let count = counts.withLock { counts in
            counts[error.code, default: 0] += 1
            return counts[error.code] ?? 1
        }
        if count == 1 { return message }
        var power = 10
        while power < count { power *= 10 }
        return power == count ? "\(message) This handle has met it \(count) times." : nil
    }
}
