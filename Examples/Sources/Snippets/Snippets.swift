import Foundation
import Larder

/// The snippets of README and of the guides.
///
/// A test of the house rules compares them line by line. `make examples` runs this program.
@main
struct Snippets {
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("larder-snippets-\(UUID())")
        try await StoreSnippets.run(folder)
        try await CacheSnippets.run(folder)
        try await CodecSnippets.run(folder)
        try MigrationSnippets.run(folder)
        try await MemorySnippets.run(folder.appendingPathComponent("snapshot"), Data([1, 2, 3]))
        try await CookbookSnippets.run(folder.appendingPathComponent("cookbook.sqlite"))
        try await HTTPSnippets.run(folder.appendingPathComponent("http.sqlite"))
        try await ServerSnippets.run(folder.appendingPathComponent("server.sqlite"))
        try await ServerRecipes.run(folder.appendingPathComponent("recipes.sqlite"))
        try await AppSnippets.run(folder.appendingPathComponent("apps.sqlite"))
        try ComingFromSnippets.run(Data([1]))
        try await PeerSnippets.run(folder.appendingPathComponent("peers.sqlite"))
        try readme(folder)
        try await readmeInTask()
        print("snippets: done")
        try FileManager.default.removeItem(at: folder)
    }

    /// The first screen of README.
    ///
    /// Its store has a name, so it is in the folder for caches, and is deleted again.
    private static func readme(_ folder: URL) throws {
        setenv("XDG_CACHE_HOME", folder.path, 1)
        let manager = try CacheManager(name: "MyApp")
        let articles: Cache<Int, Article> = try manager.cache(named: "articles", version: "3", maxAge: .days(7))

        articles[42] = Article(title: "On shelves")  // write: memory and disk
        let title = articles[42]?.title  // read: nil if missing or expired
        for (id, article) in articles { print(id, article.title) }  // loop: in the order of keys
        guard title == "On shelves" else { throw Surprise() }
        try manager.close()
    }

    private static func readmeInTask() async throws {
        let api = API()
        let manager = try await CacheManager.open(name: "MyApp")
        let articles: Cache<Int, Article> = try await manager.cache(named: "articles", version: "3", maxAge: .days(7))

        let article = try await articles.value(forKey: 42) { id in try await api.article(id) }  // load if missing
        try await articles.setValue(article, forKey: 43)
        guard articles[43]?.title == "On shelves" else { throw Surprise() }
        try await manager.close()
    }

    /// A snippet that does not do what the text says.
    private struct Surprise: Error {}
}
