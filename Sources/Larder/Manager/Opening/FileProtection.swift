#if canImport(Darwin)
internal import Foundation

/// The protection of a store's files while the device is locked.
enum FileProtection {
    /// Protects the files of a store that was just opened, and the folder of its large values, which new ones take it
    /// over from.
    static func protect(_ location: StoreLocation, _ protection: FileProtectionType) throws(CacheError) {
        let manager = FileManager.default
        try CacheError.translating("cannot protect the files of \(location.path)") {
            try manager.createDirectory(
                atPath: location.files, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            for path in [location.path] + location.logs + [location.lock, location.files] {
                guard manager.fileExists(atPath: path) else { continue }
                try manager.setAttributes([.protectionKey: protection], ofItemAtPath: path)
            }
        }
    }
}
#endif
