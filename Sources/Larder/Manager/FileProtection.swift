#if canImport(Darwin)
internal import Foundation
internal import LarderStore

/// The protection of a store's files while the device is locked.
enum FileProtection {
    /// Returns what gives a protection to those files of a list that are there.
    static func protecting(
        _ protection: FileProtectionType
    ) -> @Sendable (_ paths: [String]) throws(StoreError) -> Void {
        { paths throws(StoreError) in
            for path in paths where FileManager.default.fileExists(atPath: path) {
                do { try FileManager.default.setAttributes([.protectionKey: protection], ofItemAtPath: path) } catch {
                    throw StoreError(.storageUnavailable, "\"\(path)\" cannot be protected: \(error)")
                }
            }
        }
    }
}
#endif
