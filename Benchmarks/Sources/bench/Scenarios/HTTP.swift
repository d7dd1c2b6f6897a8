import Foundation
import Larder
import LarderHTTP

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A hit of an HTTP cache: of a small response, and of one whose body is a file.
///
/// `URLCache` finds what it stored by its URL alone: whether it may be served is the session's part, and is not in its time.
var httpScenarios: [Scenario] {
    [(300, "http-hit-300"), (100_000, "http-hit-100k")].map { size, name in
        let pages = Lazily { HTTPPages(size: size) }
        return Scenario(
            name,
            [
                Variant("LarderHTTP") { pages.value.hits(HTTPPages.url) },
                Variant("LarderHTTP, from disk") { pages.value.hits(HTTPPages.url, isFromDisk: true) },
                Variant("URLCache") { pages.value.systemHits() },
                Variant("a plain cache") { pages.value.plainHits() },
            ])
    }
}

private final class HTTPPages: Sendable {
    /// Few, because `URLCache` of Linux takes long to store more.
    static let count = 200
    static func url(_ number: Int) -> URL {
        guard let url = URL(string: "https://example.org/pages/\(number)?x=y") else { fatalError("no URL") }
        return url
    }

    private let http: HTTPCache
    private let cold: HTTPCache
    private let system: URLCache
    private let plain: Cache<String, Data>

    init(size: Int) {
        let manager = attempt { try CacheManager(url: Workplace.path()) }
        let body = Data((0..<size).map { UInt8(truncatingIfNeeded: $0) })
        let fields = [("Cache-Control", "max-age=3600"), ("Content-Type", "text/plain"), ("ETag", "\"a\"")]
        let (http, cold) = waitedFor {
            let http = try await HTTPCache(in: manager, options: HTTPOptions(sizeLimit: nil))
            for number in 0..<HTTPPages.count {
                _ = try await http.response(for: HTTPRequest(HTTPPages.url(number))) { _ in
                    HTTPResponse(status: 200, fields: fields, body: body)
                }
            }
            // Without memory each hit reads the disk.
            let other = attempt { try CacheManager(url: manager.url ?? Workplace.path()) }
            return (http, try await HTTPCache(in: other, options: HTTPOptions(memory: .disabled, sizeLimit: nil)))
        }
        (self.http, self.cold) = (http, cold)
        system = URLCache(memoryCapacity: 1 << 30, diskCapacity: 1 << 30, diskPath: Workplace.path().path)
        plain = attempt { try manager.cache(named: "plain", version: "1", maxAge: .unlimited) }
        for number in 0..<Self.count {
            let url = Self.url(number)
            attempt { try plain.setValue(body, forKey: url.absoluteString) }
            let pairs = Dictionary(fields) { first, _ in first }
            guard let answer = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: pairs)
            else { continue }
            system.storeCachedResponse(CachedURLResponse(response: answer, data: body), for: URLRequest(url: url))
        }
    }

    func hits(_ url: @escaping @Sendable (Int) -> URL, isFromDisk: Bool = false) -> Double {
        let http = isFromDisk ? cold : http
        return nanoseconds(per: Self.count) {
            waitFor {
                for number in 0..<Self.count {
                    let response = try? await http.response(for: HTTPRequest(url(number))) { _ in
                        throw CancellationError()
                    }
                    consume(response?.body.first)
                }
            }
        }
    }

    func systemHits() -> Double {
        nanoseconds(per: Self.count) {
            for number in 0..<Self.count {
                consume(system.cachedResponse(for: URLRequest(url: Self.url(number)))?.data.first)
            }
        }
    }

    func plainHits() -> Double {
        nanoseconds(per: Self.count) {
            for number in 0..<Self.count { consume(plain[Self.url(number).absoluteString]?.first) }
        }
    }
}
