import Foundation
import Larder

private struct ArticleV2: Codable, Sendable { var title: String }
private struct ArticleV3: Codable, Sendable {
    var title: String
    var author: String?

    init(_ old: ArticleV2) { title = old.title }
}
private struct Headline: Codable, Sendable {
    var title: String
    var byline: String
    var subtitle: String?
}

/// The snippets of the guide on migrations.
enum MigrationSnippets {
    static func run(_ folder: URL) throws {
        let manager = try CacheManager(url: folder.appendingPathComponent("migrated.sqlite"))
        let articles: Cache<Int, Headline> = try manager.cache(
            named: "articles", version: "4", maxAge: .days(7),
            migrations: [
                .from("3", as: ArticleV3.self) { old in
                    Headline(title: old.title, byline: old.author ?? "unknown")
                },
                .from("2", as: ArticleV2.self, to: "3", as: ArticleV3.self) { ArticleV3($0) },
                .keeping("3.1"),
            ])
        _ = try articles.count
        try twoForms(manager)
        try manager.close()
    }

    private static func twoForms(_ manager: CacheManager) throws {
        let codec = ValueCodec<String>(identifier: "text") { value in
            Data("2\(value)".utf8)
        } decode: { bytes in
            let text = String(decoding: bytes, as: UTF8.self)
            // Values of the first form have no number in front.
            return text.hasPrefix("2") ? String(text.dropFirst()) : text
        }
        let texts: Cache<Int, String> = try manager.cache(
            named: "texts", version: "1", maxAge: .days(7), codec: codec)
        texts[1] = "on shelves"
    }
}
