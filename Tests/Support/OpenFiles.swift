import Foundation

/// The files that this process has open, as the system lists them; none elsewhere than on Linux.
package enum OpenFiles {
    /// Waits until so many descriptors lead to paths that are asked for.
    package static func wait(
        for isMeant: (String) -> Bool, until isEnough: (Int) -> Bool, file: StaticString = #fileID, line: Int = #line
    ) throws {
        try Waiting.until(file, line) { isEnough(try paths(where: isMeant).count) }
    }

    /// The paths that are asked for, each as often as a descriptor leads there.
    package static func paths(where isMeant: (String) -> Bool) throws -> [String] {
        #if os(Linux)
        try FileManager.default.contentsOfDirectory(atPath: folder).compactMap(target).filter(isMeant)
        #else
        []
        #endif
    }

    private static let folder = "/proc/self/fd"

    /// Where a descriptor leads; nil for one that was closed since the listing.
    private static func target(_ descriptor: String) throws -> String? {
        do {
            return try FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + descriptor)
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile || error.code == .fileNoSuchFile {
            return nil
        }
    }
}
