internal import Foundation
internal import LarderStore

/// The file of a snapshot, which is replaced in one step.
///
/// The new file is written next to the old one under a name of its own: `.larder-`, 16 digits for the name of the
/// snapshot, and a UUID. If the process dies, it is left. The next save to the same place deletes those of an hour ago.
enum SnapshotFile {
    private static let longestSave: Int64 = 3_600_000

    /// The path by which a snapshot is known, however it is named.
    static func path(of url: URL) -> String { url.resolvingSymlinksInPath().path }

    static func mayExist(_ url: URL) -> Bool {
        do { return try FileSystem.status(url.path) != nil } catch { return true }
    }

    /// Puts a file with these bytes in the place of what is at `url`, after they have reached the disk.
    static func replace(_ url: URL, with bytes: Data) throws(CacheError) {
        let folder = FileSystem.folder(of: url.path)
        let name = Data(url.lastPathComponent.utf8).withUnsafeBytes { Checksum.of($0) }
        let prefix = ".larder-\(name.digits)-"
        let path = "\(folder)/\(prefix)\(UUID().uuidString)"
        do {
            // If a file cannot be deleted, the next save tries again.
            do { try deleteAbandoned(prefix, in: folder) } catch {}
            try bytes.withUnsafeBytes { bytes throws(any Error) in
                _ = try FileSystem.write(bytes, path, oldSize: nil, syncs: true)
            }
            do {
                guard try FileSystem.rename(path, to: url.path) else {
                    throw FileError(number: ENOENT, call: "rename", path: path)
                }
            } catch {
                try FileSystem.delete(path)
                throw error
            }
            // The new name reaches the disk with the folder. If that cannot be synced, the old file is still whole.
            do { try FileSystem.sync(folder) } catch {}
        } catch {
            let failure = error as? FileError
            throw CacheError(
                failure?.isAboutRoom == true ? .storageFull : .storageUnavailable,
                "The snapshot \(url.path) cannot be written (\(failure?.description ?? "\(error)")). What was there before is"
                    + " untouched. Check that its folder exists and its permissions.")
        }
    }

    private static func deleteAbandoned(_ prefix: String, in folder: String) throws(FileError) {
        let now = SystemClock.now()
        for name in try FileSystem.names(in: folder) where name.hasPrefix(prefix) {
            let path = folder + "/" + name
            guard let status = try FileSystem.status(path), status.isFile else { continue }
            if now.subtractingSaturated(status.modifiedAt) > longestSave { try FileSystem.delete(path) }
        }
    }
}
