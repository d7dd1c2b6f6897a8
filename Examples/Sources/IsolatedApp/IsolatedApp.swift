import Foundation
import Larder

// A new app of Xcode 26: all that says nothing else is isolated to the main actor.

nonisolated struct Article: Codable, Sendable {
    var title: String
}

final class Model {
    private let articles: Cache<Int, Article>
    private(set) var shown: Article?

    init(_ articles: Cache<Int, Article>) { self.articles = articles }

    func show(_ id: Int) async throws {
        // No disk: the first frame.
        shown = articles.memory.value(forKey: id, allowingExpired: true)
        shown = try await articles.value(forKey: id) { id in try await self.download(id) }
    }

    private func download(_ id: Int) async throws -> Article { Article(title: "Article \(id)") }
}

@main
struct IsolatedApp {
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "larder-isolated-\(UUID().uuidString)")
        defer { do { try FileManager.default.removeItem(at: folder) } catch { print(error) } }
        let manager = try await CacheManager.open(url: folder.appendingPathComponent("store.sqlite"))
        let articles = try await manager.cache(
            of: Int.self, Article.self, named: "articles", version: "1", maxAge: .days(7))
        let model = Model(articles)
        print("Before:", articles.memory[7]?.title ?? "nothing")
        try await model.show(7)
        print("After: ", model.shown?.title ?? "nothing")
        print("Memory:", articles.memory[7]?.title ?? "nothing")

        try await articles.update(7) { $0?.title += "!" }
        print("Updated:", try await articles.value(forKey: 7)?.title ?? "nothing")
        print("Entries:", try await articles.count())
        try await manager.close()
    }
}
