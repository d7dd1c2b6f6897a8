package import Foundation
@_exported public import LarderTesting

extension TemporaryFolder {
    /// - Parameter suite: The file of the suite, which says whether the folder is named by a link: half of them are.
    package convenience init(_ suite: String = #fileID) throws {
        try self.init(isLinked: suite.utf8.reduce(0) { $0 &+ Int($1) } % 2 == 0)
    }

    /// Every file below the folder with its bytes; folders with nil.
    ///
    /// What goes while it is listed is not there.
    package func contents() throws -> [String: Data?] {
        var contents: [String: Data?] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: realURL.path) {
            var isFolder: ObjCBool = false
            let path = url.appendingPathComponent(name).path
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else { continue }
            do {
                contents[name] = .some(isFolder.boolValue ? nil : try Data(contentsOf: URL(fileURLWithPath: path)))
            } catch let error as CocoaError where error.code == .fileReadNoSuchFile || error.code == .fileNoSuchFile {
                continue
            }
        }
        return contents
    }

    /// Writes what `contents()` has given.
    package func restore(_ contents: [String: Data?]) throws {
        for (name, data) in contents.sorted(by: { $0.key < $1.key }) {
            let place = url.appendingPathComponent(name)
            if let data {
                try data.write(to: place)
            } else {
                try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            }
        }
    }

    /// The names in the folder, sorted.
    package var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: realURL.path).sorted() }
    }
}

extension URL {
    /// The same file below a folder without links.
    package var real: URL {
        deletingLastPathComponent().resolvingSymlinksInPath().appendingPathComponent(
            lastPathComponent, isDirectory: false)
    }
}
