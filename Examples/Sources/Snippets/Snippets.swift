import Foundation
import Larder

/// The snippets of README and of the documentation, as they stand there.
///
/// A test of the house rules compares them; `make examples` runs those that end.
@main
struct Snippets {
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("larder-snippets-\(UUID())")
        try await opening(folder)
        try FileManager.default.removeItem(at: folder)
    }

    private static func opening(_ folder: URL) async throws {
        let manager = try CacheManager(url: folder.appendingPathComponent("app.sqlite"))
        let listening = Task {
            for await event in manager.events {
                print(event.message)
            }
        }
        try await manager.close()
        await listening.value
        print("snippets: done")
    }

    /// Compiled, not run: it would open a store in the user's caches directory.
    static func named() throws {
        let manager = try CacheManager(name: "MyApp")
        print(manager)
    }
}
