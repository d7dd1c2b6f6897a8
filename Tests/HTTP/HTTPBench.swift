import Foundation
import Larder
import LarderHTTP
import LarderShared
import LarderTestSupport
import LarderTesting

/// A cache of HTTP over an origin that answers what it is told.
final class HTTPBench: Sendable {
    let store: TemporaryStore
    let manager: CacheManager
    let http: HTTPCache
    /// The requests that the origin has got.
    let requests: Locked<[HTTPRequest]>
    /// What it answers, by its number from 0.
    let answers: Locked<[Int: @Sendable (HTTPRequest) async throws -> HTTPResponse]>

    /// - Parameter origin: One with which it has its origin in common.
    init(
        _ options: HTTPOptions = .init(), _ store: TemporaryStore? = nil, through tier: (any SharedTier)? = nil,
        origin: HTTPBench? = nil
    ) async throws {
        self.store = try store ?? TemporaryStore()
        // A date of HTTP has no milliseconds.
        self.store.clock.set(Date(timeIntervalSince1970: 1_700_000_000))
        (requests, answers) = (origin?.requests ?? Locked([]), origin?.answers ?? Locked([:]))
        manager = try self.store.manager()
        http = try await HTTPCache(in: manager, through: tier, options: options)
    }

    /// A moment that is so many seconds from now.
    func date(_ seconds: Int) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: store.clock.now.addingTimeInterval(Double(seconds)))
    }

    /// Lets the next request that the origin gets be answered so.
    func answer(_ status: Int = 200, _ fields: [(String, String)] = [], _ body: String? = nil) {
        answers.change { answers in
            let number = (answers.keys.max() ?? -1) + 1
            answers[number] = { _ in
                HTTPResponse(status: status, fields: fields, body: Data((body ?? "body \(number)").utf8))
            }
        }
    }

    func get(
        _ path: String = "/page", _ fields: [(String, String)] = [], method: String = "GET"
    ) async throws -> HTTPResponse {
        guard let url = URL(string: path.hasPrefix("/") ? "https://example.org\(path)" : path) else { throw Lost() }
        return try await ask(HTTPRequest(url, method: method, fields: fields))
    }

    struct Lost: Error {}

    func ask(_ request: HTTPRequest) async throws -> HTTPResponse {
        try await http.response(for: request) { [requests, answers] request in
            let number = requests.change {
                $0.append(request)
                return $0.count - 1
            }
            guard let answer = answers.value[number] else { throw Lost() }
            return try await answer(request)
        }
    }

    /// The keys in the store.
    func keys() async throws -> [String] {
        let records: Cache<String, Int> = try await store.manager().cache(
            named: "http", version: .custom("1 private"), maxAge: .unlimited)
        return Array(records.keys)
    }

    var sent: Int { requests.value.count }
    func wait(_ seconds: Int) { store.clock.advance(by: .seconds(seconds)) }
}

extension HTTPResponse {
    var text: String { String(decoding: body, as: UTF8.self) }
    var outcome: String { field("Cache-Status") ?? "" }
}
