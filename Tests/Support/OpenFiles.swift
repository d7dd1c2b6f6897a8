import Foundation

/// The files that this process has open, as the system lists them; Linux only.
package enum OpenFiles {
    /// Waits until so many descriptors lead to paths that are asked for.
    package static func wait(
        for isMeant: (String) -> Bool, until isEnough: (Int) -> Bool, file: StaticString = #fileID, line: Int = #line
    ) throws {
        try Waiting.until(file, line) { isEnough(count(where: isMeant)) }
    }

    /// How many descriptors lead to paths that are asked for.
    package static func count(where isMeant: (String) -> Bool) -> Int { paths().count(where: isMeant) }

    private static func paths() -> [String] {
        let folder = "/proc/self/fd"
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder) else { return [] }
        return names.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + $0) }
    }
}
