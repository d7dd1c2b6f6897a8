package import Foundation

/// A folder of a test's own, gone with it.
package final class TemporaryFolder: Sendable {
    /// The folder as the test names it: perhaps a symbolic link, which a store has to resolve.
    package let url: URL
    /// The folder itself.
    package let realURL: URL

    package init(isLinked: Bool) throws {
        let parent = FileManager.default.temporaryDirectory.path
        // What SQLite is given has no link in it.
        let real = realpath(parent, nil)
        defer { free(real) }
        realURL = URL(fileURLWithPath: real.map { String(cString: $0) } ?? parent, isDirectory: true)
            .appendingPathComponent("larder-test-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: realURL, withIntermediateDirectories: true)
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
}
