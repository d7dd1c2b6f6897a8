import Foundation
import Larder

/// In place of Nuke.
protocol DataCaching: Sendable {
    func cachedData(for key: String) -> Data?
    func containsData(for key: String) -> Bool
    func storeData(_ data: Data, for key: String)
    func removeData(for key: String)
    func removeAll()
}

struct ImageStore: DataCaching {
    let images: Cache<String, Data>
    // Nuke expects that a call which stores returns at once.
    let queue = DispatchQueue(label: "images")

    func cachedData(for key: String) -> Data? { images[key] }
    func containsData(for key: String) -> Bool { (try? images.contains(key)) ?? false }
    func storeData(_ data: Data, for key: String) { queue.async { images[key] = data } }
    func removeData(for key: String) { queue.async { images[key] = nil } }
    func removeAll() { queue.async { do { try images.removeAll() } catch { print(error) } } }
}

/// The snippets of the guide *Move from an image cache or a database*.
enum PeerSnippets {
    private struct Surprise: Error {}

    static func run(_ file: URL) async throws {
        let manager = try await CacheManager.open(url: file)
        let url = "https://example.org/cat.jpg"
        let image = Data("cat".utf8)

        let images: Cache<String, Data> = try await manager.cache(
            named: "images", version: "1", maxAge: .days(7),
            options: CacheOptions(disk: DiskLimits(sizeLimit: 150 << 20)))
        try await images.setValue(image, forKey: url, tags: ["avatars"])
        let stored = try await images.value(forKey: url)
        guard stored == image, ImageStore(images: images).containsData(for: url) else { throw Surprise() }

        let articles: Cache<Int, Article> = try await manager.cache(named: "articles", version: "3", maxAge: .days(7))
        try await articles.setValues([7: Article(title: "On jars"), 11: Article(title: "On labels")])
        var latest: [Article] = []
        for try await entry in articles.entries(orderedBy: .written, descending: true, limit: 20).async {
            latest.append(entry.value)
        }
        try await articles.update(7) { $0?.title = "On lids" }
        guard latest.count == 2 else { throw Surprise() }
        try await manager.close()
    }
}
