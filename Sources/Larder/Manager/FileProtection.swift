#if canImport(Darwin)
internal import Foundation
internal import LarderStore

/// The protection of a store's files while the device is locked.
enum FileProtection {
    /// Protects the files of a store that was just opened.
    ///
    /// The folder of the value files passes its protection on to new ones.
    static func protect(_ path: String, _ protection: FileProtectionType) throws(CacheError) {
        let manager = FileManager.default
        let files = ValueFiles.folder(of: path)
        do {
            try manager.createDirectory(
                atPath: files, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            for path in [path, path + "-wal", path + "-shm", path + ".lock", files] {
                guard manager.fileExists(atPath: path) else { continue }
                try manager.setAttributes([.protectionKey: protection], ofItemAtPath: path)
            }
        } catch {
            throw CacheError(.storageUnavailable, "The files of \(path) cannot be protected: \(error)")
        }
    }
}
#endif
