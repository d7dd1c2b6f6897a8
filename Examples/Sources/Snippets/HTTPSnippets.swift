import Foundation
import Larder
import LarderHTTP
import LarderShared

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The snippets of *Cache HTTP*.
enum HTTPSnippets {
    /// A server that answers without a network.
    private static func origin(_ request: HTTPRequest) async throws -> HTTPResponse {
        HTTPResponse(status: 200, fields: [("Cache-Control", "max-age=60")], body: Data("page".utf8))
    }

    static func run(_ file: URL) async throws {
        let manager = try await CacheManager.open(url: file)
        guard let url = URL(string: "https://example.org/page") else { return }
        let send = Self.origin
        do {
            let http = try await HTTPCache(in: manager)
            let response = try await http.response(for: HTTPRequest(url)) { request in
                try await send(request)
            }
            print(response.status, response.field("Cache-Status") ?? "")
            print(http.statistics.hits, http.statistics.hitRate ?? 0)
            try await http.removeAll(host: "example.org")
        }
        do {
            let options = HTTPOptions(partition: { request in request.field("X-User") ?? "" })
            let perUser = try await HTTPCache(in: manager, named: "pages", options: options)
            _ = try await perUser.response(for: HTTPRequest(url), send: send)
        }
        do {
            let tier = MemorySharedTier()
            let nodes = try await HTTPCache(in: manager, named: "api", through: tier)
            _ = try await nodes.response(for: HTTPRequest(url), send: send)
            await nodes.close()
        }
        try await manager.close()
    }

    /// A client.
    struct Client: Sendable {
        func send(_ request: HTTPRequest) async throws -> HTTPResponse {
            var message = URLRequest(url: request.url, cachePolicy: .reloadIgnoringLocalCacheData)
            message.httpMethod = request.method
            message.httpBody = request.body
            for (name, value) in request.fields { message.addValue(value, forHTTPHeaderField: name) }
            let (body, answer) = try await URLSession.shared.data(for: message)
            guard let answer = answer as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            let fields = answer.allHeaderFields.map { ("\($0.key)", "\($0.value)") }
            return HTTPResponse(status: answer.statusCode, fields: fields, body: body, url: answer.url)
        }
    }
}
