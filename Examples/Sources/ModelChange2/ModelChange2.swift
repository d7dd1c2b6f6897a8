import Foundation
import Larder

/// A bookmark as the second build knows it.
struct Bookmark: Codable, Sendable {
    var url: URL
    var topics: [String]
}

/// A bookmark as the first build knew it.
private struct OldBookmark: Codable {
    var address: String
    var note: String
}

/// The second build of a program.
///
/// Its first build is ModelChange1.
@main
struct ModelChange2 {
    static func main() async throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("larder-model/app.sqlite")
        // Its events are printed below.
        let manager = try CacheManager(url: url, configuration: .init(log: { _ in }))
        let bookmarks: Cache<Int, Bookmark> = try await manager.cache(
            named: "bookmarks", version: "2", maxAge: .days(7),
            migrations: [
                .from("1", as: OldBookmark.self) { old in
                    guard !old.address.isEmpty, let url = URL(string: "https://\(old.address)") else { return nil }
                    return Bookmark(url: url, topics: old.note.components(separatedBy: ", "))
                }
            ])
        for (id, bookmark) in bookmarks {
            print("Build 2 has \(id): \(bookmark.url), \(bookmark.topics.joined(separator: " and "))")
        }
        print("Its age and its tags are as before: \(try await bookmarks.keys(tagged: "work"))")
        try await manager.close()
        for await event in manager.events { print(event.message) }
    }
}
