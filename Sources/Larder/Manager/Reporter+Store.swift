internal import Foundation
internal import LarderStore

extension Reporter {
    /// Reports what the store has noticed.
    func report(_ event: StoreEvent) {
        switch event {
        case .replaced(let salvage):
            let text =
                "The database was damaged or of a later release, and was replaced. \(salvage.kept) entries were carried over,"
                + " \(salvage.lost) were lost. The original is at \(salvage.path)."
            report(CacheEvent(.recovered(setAside: URL(fileURLWithPath: salvage.path)), message: text), .warning)
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
        case .removed, .damaged, .undecodable: return
        }
        let text = "The entry of key \"\(row.key.name)\" in the cache \"\(cache)\" \(verb)."
        report(CacheEvent(kind, cacheName: cache, key: row.key.name, message: text), .debug)
    }
}
