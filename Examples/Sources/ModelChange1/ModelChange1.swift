import Foundation
import Larder

/// A bookmark as the first build knows it.
struct Bookmark: Codable, Sendable {
    var address: String
    var note: String
}

/// The first build of a program.
///
/// Its second build is ModelChange2.
@main
struct ModelChange1 {
    static func main() async throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("larder-model/app.sqlite")
        let manager = try CacheManager(url: url)
        let bookmarks: Cache<Int, Bookmark> = try await manager.cache(
            named: "bookmarks", version: "1", maxAge: .days(7))
        try await bookmarks.setValue(Bookmark(address: "swift.org", note: "language, tools"), forKey: 1, tags: ["work"])
        try await bookmarks.setValue(Bookmark(address: "", note: "lost"), forKey: 2)
        try await bookmarks.setValue(Bookmark(address: "sqlite.org", note: "database"), forKey: 3, maxAge: .days(30))
        print("Build 1 has stored \(try bookmarks.count) bookmarks.")
        try await manager.close()
    }
}
