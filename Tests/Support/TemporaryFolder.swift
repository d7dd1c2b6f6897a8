package import Foundation

/// A folder of a test's own, gone with it.
package final class TemporaryFolder: Sendable {
    /// The folder as the test names it: in half of the suites a symbolic link, which a store has to resolve.
    package let url: URL
    /// The folder itself.
    package let realURL: URL

    /// - Parameter suite: The file of the suite, which says whether the folder is named by a link.
    package init(_ suite: String = #fileID) throws {
        realURL = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
            .appendingPathComponent("larder-test-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: realURL, withIntermediateDirectories: true)
        let isLinked = suite.utf8.reduce(0) { $0 &+ Int($1) } % 2 == 0
        url = isLinked ? URL(fileURLWithPath: realURL.path + "-link", isDirectory: true) : realURL
        if isLinked { try FileManager.default.createSymbolicLink(at: url, withDestinationURL: realURL) }
    }

    deinit {
        do {
            if url != realURL { try FileManager.default.removeItem(at: URL(fileURLWithPath: url.path)) }
            try FileManager.default.removeItem(at: realURL)
        } catch {
            print("could not delete \(url.path): \(error)")
        }
    }

    /// A path in the folder.
    package func callAsFunction(_ name: String) -> URL { url.appendingPathComponent(name, isDirectory: false) }

    /// A path in the folder itself, for SQLite, which follows no links.
    package func real(_ name: String) -> URL { realURL.appendingPathComponent(name, isDirectory: false) }

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
