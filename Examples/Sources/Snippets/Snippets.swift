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
        try memory(folder.appendingPathComponent("snapshot"), Data([1, 2, 3]))
        try codecs()
        print("snippets: done")
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
    }

    private static func memory(_ file: URL, _ data: Data) throws {
        let images = MemoryCache<String, Data>(countLimit: 1000, costLimit: 64 << 20)
        images.setValue(data, forKey: "logo", cost: data.count)
        let logo = images["logo"]

        let sessions = MemoryCache<String, String>(maxAge: .minutes(10).sinceLastAccess)
        sessions["a"] = "b"
        try sessions.save(to: file)
        let count = try sessions.load(from: file)
        guard logo == data, count == 1 else { throw Surprise() }
    }

    private static func codecs() throws {
        let bytes = try CBOREncoder().encode(["a": [1, 2, 3]])
        let back = try CBORDecoder().decode([String: [Int]].self, from: bytes)
        let codec = ValueCodec<String>(
            identifier: "utf8", encode: { Data($0.utf8) }, decode: { String(decoding: $0, as: UTF8.self) }
        ).then(DataTransform(identifier: "flip", apply: { Data($0.map { ~$0 }) }, undo: { Data($0.map { ~$0 }) }))
        guard back == ["a": [1, 2, 3]], codec.identifier == "utf8+flip" else { throw Surprise() }
    }

    /// A snippet that does not do what the text says.
    private struct Surprise: Error {}

    /// Compiled, not run: it would open a store in the user's caches directory.
    static func named() throws {
        let manager = try CacheManager(name: "MyApp")
        print(manager)
    }
}
