import Foundation
import Larder

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

#if canImport(ImageIO)
import ImageIO
import UniformTypeIdentifiers
#endif

struct Article: Codable, Sendable { var title: String }

/// A server.
struct API: Sendable {
    func article(_ id: Int) async throws -> Article { Article(title: "article \(id)") }

    func articles(_ ids: [Int]) async throws -> [Int: Article] {
        Dictionary(uniqueKeysWithValues: ids.map { ($0, Article(title: "article \($0)")) })
    }
}

struct Caches: Sendable {
    let manager: CacheManager
    let articles: Cache<Int, Article>
    let photos: Cache<String, Data>

    init(_ manager: CacheManager) async throws {
        self.manager = manager
        articles = try await manager.cache(named: "articles", version: 3, maxAge: .hours(1))
        photos = try await manager.cache(
            named: "photos", version: 1, maxAge: .days(30),
            options: CacheOptions(disk: DiskLimits(sizeLimit: 512 << 20)))
    }
}

/// The snippets of the cookbook.
enum CookbookSnippets {
    private struct Surprise: Error {}
    private static let api = API()

    static func run(_ file: URL) async throws {
        let manager = try await CacheManager.open(url: file)
        let caches = try await Caches(manager)
        try await http(manager)
        try await memoize(manager)
        try await users("ada", manager)
        try await fields(manager)
        try await counters(manager)
        try await articles(caches.articles, manager)
        try await manager.close()
        try await printing(file)
    }

    private static func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        let headers = ["ETag": "v1", "Cache-Control": "max-age=60"]
        guard let url = request.url,
            let answer = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: headers)
        else { throw Surprise() }
        return (Data("page".utf8), answer)
    }

    static func http(_ manager: CacheManager) async throws {
        let cache: Cache<URL, Data> = try await manager.cache(named: "http", version: 1, maxAge: .minutes(5))
        let url = URL(fileURLWithPath: "/page")
        let pages = cache.generator(GenerationPolicy(staleOnError: .seconds(86_400))) { url, old in
            var request = URLRequest(url: url)
            if let tag = old?.extendedData {
                request.setValue(String(decoding: tag, as: UTF8.self), forHTTPHeaderField: "If-None-Match")
            }
            let (body, answer) = try await send(request)
            if answer.statusCode == 304 { return .notModified }
            if [404, 410].contains(answer.statusCode) { return .none(for: .minutes(1)) }
            guard answer.statusCode == 200 else { throw URLError(.badServerResponse) }
            let tag = answer.value(forHTTPHeaderField: "ETag").map { Data($0.utf8) }
            return .value(body, maxAge: maxAge(of: answer), extendedData: tag)
        }
        let page = try await pages(url)
        guard page == Data("page".utf8) else { throw Surprise() }
        guard try await cache.extendedData(forKey: url) == Data("v1".utf8) else { throw Surprise() }
    }

    static func maxAge(of answer: HTTPURLResponse) -> MaxAge? {
        Header().maxAge(of: answer)
    }

    private static func factorize(_ number: Int) -> [Int] {
        guard let factor = (2...max(2, number)).first(where: { number % $0 == 0 }), factor < number else {
            return [number]
        }
        return [factor] + factorize(number / factor)
    }

    private static func memoize(_ manager: CacheManager) async throws {
        let primes: Cache<Int, [Int]> = try await manager.cache(
            named: "primes", version: .buildStamp, maxAge: .unlimited)
        let factors = primes.generator { number in factorize(number) }
        let result = try await factors(360_360)
        guard result == [2, 2, 2, 3, 3, 5, 7, 11, 13] else { throw Surprise() }
    }

    private static func users(_ user: String, _ manager: CacheManager) async throws {
        func messages(of user: String, in manager: CacheManager) async throws -> Cache<Int, String> {
            try await manager.cache(named: "messages of \(user)", version: 1, maxAge: .days(7))
        }
        try await messages(of: user, in: manager).setValue("hello", forKey: 1)

        try await messages(of: user, in: manager).clear()
        try await manager.removeCache(named: "messages of \(user)")
    }

    private struct Story: Codable, Sendable { var title, author: String }

    private static func fields(_ manager: CacheManager) async throws {
        let stories: Cache<Int, Story> = try await manager.cache(
            named: "stories", version: "1", maxAge: .days(7),
            attributes: { id, story in EntryAttributes(tags: ["author:\(story.author)"]) })
        try await stories.setValue(Story(title: "Bread", author: "Ann"), forKey: 1)
        let byAnn = try await stories.entries(tagged: "author:Ann")
        guard byAnn.count == 1 else { throw Surprise() }
    }

    private static func counters(_ manager: CacheManager) async throws {
        let counts: Cache<String, Int> = try await manager.cache(named: "counts", version: 1, maxAge: .unlimited)
        let visits = try await counts.update("visits") { count in
            count = (count ?? 0) + 1
            return count
        }
        guard visits == 1 else { throw Surprise() }

        let pages: Cache<String, [Int]> = try await manager.cache(named: "lists", version: 1, maxAge: .minutes(5))
        let list = try await pages.value(forKey: "news?page=2") { _, _ in
            .value([11, 12, 13], tags: ["news"])
        }
        try await pages.removeAll(tagged: "news")
        guard list?.count == 3, pages["news?page=2"] == nil else { throw Surprise() }
    }

    private static func articles(_ articles: Cache<Int, Article>, _ manager: CacheManager) async throws {
        let wanted = [1, 2, 3, 4]
        let known = try await articles.metadata(forKeys: wanted)
        let missing = wanted.filter { known[$0] == nil }
        try await articles.setValues(try await api.articles(missing))
        guard articles[4] != nil else { throw Surprise() }

        do {
            let feeds: Cache<String, [Int]> = try await manager.cache(named: "feeds", version: 1, maxAge: .minutes(5))
            let ids = try await feeds.value(forKey: "home") { _ in [3, 1, 2] }
            let loaded = try await articles.values(forKeys: ids) { missing in try await api.articles(missing) }
            let shown = ids.compactMap { loaded[$0] }
            guard shown.count == 3 else { throw Surprise() }
        }
        do {
            let fresh = try await api.article(7)
            try await articles.setValue(fresh, forKey: 7)
        }
        do {
            let policy = GenerationPolicy(
                staleOnError: .seconds(86_400), refreshAhead: .probabilistic, softTimeout: .milliseconds(300),
                timeout: .seconds(10))
            let client = articles.batching(policy) { ids in
                let found = try await api.articles(ids)
                var made: [Int: Generated<Article>] = [:]
                for id in ids {
                    if let article = found[id] {
                        made[id] = .value(article, maxAge: .hours(1), tags: ["article"])
                    } else {
                        made[id] = Generated<Article>.none(for: .minutes(5))
                    }
                }
                return made
            }
            let shown = try await client(42)
            guard shown?.title == "article 42" else { throw Surprise() }
        }
        do {
            let article = try await articles.entry(forKey: 7, allowingExpired: true)
            print(article?.value.title ?? "nothing", article?.isExpired ?? false)
        }
        let old: Cache<Int, Article> = try await manager.cache(named: "old", version: 1, maxAge: .days(1))
        try await old.setValue(Article(title: "old"), forKey: 9)
        for try await (id, article) in old.async {
            try await articles.setValue(article, forKey: id)
        }
        guard articles[9]?.title == "old" else { throw Surprise() }

        let title = try await withCheckedThrowingContinuation { continuation in
            Completion(articles: articles).article(12) { continuation.resume(with: $0) }
        }.title
        guard title == "article 12" else { throw Surprise() }
    }

    private struct Completion {
        let articles: Cache<Int, Article>

        func article(_ id: Int, completion: @escaping @Sendable (Result<Article, any Error>) -> Void) {
            Task {
                do {
                    let article = try await articles.value(forKey: id) { id in try await api.article(id) }
                    completion(.success(article))
                } catch {
                    completion(.failure(error))
                }
            }
        }
    }

    private static func printing(_ file: URL) async throws {
        let configuration = CacheManager.Configuration(log: { print($0.level, $0.message) })
        let manager = try await CacheManager.open(url: file, configuration: configuration)
        let listener = Task { for await event in manager.events { print(event.message) } }
        try await manager.close()
        await listener.value
    }

}

/// What a header says.
private struct Header {
    func maxAge(of answer: HTTPURLResponse) -> MaxAge? {
        let control = answer.value(forHTTPHeaderField: "Cache-Control") ?? ""
        guard let match = control.firstMatch(of: /max-age=(\d+)/), let seconds = Double(match.1) else { return nil }
        return .seconds(seconds)
    }
}

#if canImport(ImageIO)
/// Images as values.
private enum ImageSnippets {
    struct Unreadable: Error {}

    static func run(_ thumbnails: Cache<String, CGImage>, _ image: CGImage) async throws {
        let images = ValueCodec<CGImage>(identifier: "png") { image in
            let data = NSMutableData()
            guard let target = CGImageDestinationCreateWithData(data, UTType.png.identifier as CFString, 1, nil)
            else { throw Unreadable() }
            CGImageDestinationAddImage(target, image, nil)
            guard CGImageDestinationFinalize(target) else { throw Unreadable() }
            return data as Data
        } decode: { data in
            guard let source = CGImageSourceCreateWithData(data as CFData, nil),
                let image = CGImageSourceCreateImageAtIndex(source, 0, nil)
            else { throw Unreadable() }
            return image
        }
        _ = images
        try await thumbnails.setValue(image, forKey: "cat", cost: image.bytesPerRow * image.height)
    }
}
#endif
