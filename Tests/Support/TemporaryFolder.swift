package import Foundation

/// A folder of a test's own, gone with it.
package final class TemporaryFolder: Sendable {
    package let url: URL

    package init() throws {
        // Resolved, since the store resolves its folder too.
        url = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
            .appendingPathComponent("larder-test-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        do {
            try FileManager.default.removeItem(at: url)
        } catch {
            print("could not delete \(url.path): \(error)")
        }
    }

    /// A path in the folder.
    package func callAsFunction(_ name: String) -> URL { url.appendingPathComponent(name, isDirectory: false) }

    /// Every file below the folder with its bytes; folders with nil.
    ///
    /// What goes while it is listed is not there.
    package func contents() throws -> [String: Data?] {
        var contents: [String: Data?] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: url.path) {
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
        get throws { try FileManager.default.contentsOfDirectory(atPath: url.path).sorted() }
    }
}
