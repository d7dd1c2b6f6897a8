#if canImport(Darwin)
internal import Foundation
internal import LarderStore

/// What Apple's systems keep about the files of a store.
enum FileAttributes {
    /// Returns what gives attributes to those files of a list that are there.
    ///
    /// - Parameters:
    ///   - protection: The protection while the device is locked; nil leaves it to the system.
    ///   - excludesFromBackup: A Boolean value that indicates whether backups leave the files out.
    static func setting(
        _ protection: FileProtectionType?, excludesFromBackup: Bool
    ) -> @Sendable (_ paths: [String]) throws(StoreError) -> Void {
        { paths throws(StoreError) in
            for path in paths where FileManager.default.fileExists(atPath: path) {
                do {
                    if let protection {
                        try FileManager.default.setAttributes([.protectionKey: protection], ofItemAtPath: path)
                    }
                    if excludesFromBackup {
                        var (url, values) = (URL(fileURLWithPath: path), URLResourceValues())
                        values.isExcludedFromBackup = true
                        try url.setResourceValues(values)
                    }
                } catch {
                    throw StoreError(.storageUnavailable, "The attributes of \"\(path)\" cannot be set: \(error)")
                }
            }
        }
    }
}
#endif
