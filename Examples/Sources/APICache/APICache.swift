import Foundation
import Larder
import LarderHTTP
import Synchronization

/// A client that caches what an HTTP server sends, as the fields of its answers say.
@main
struct APICache {
    static func main() async throws {
        let origin = try Origin()
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("larder-api/pages.sqlite")
        // A clock that stands still until a second is to pass. What fails is printed below, and needs no log.
        let late = Atomic(0)
        let manager = try CacheManager(
            url: file,
            configuration: .init(
                clock: { Date(timeIntervalSince1970: 1_700_000_000 + Double(late.load(ordering: .relaxed))) },
                log: { _ in }))
        // Stale pages are better than none, for a day.
        let http = try await HTTPCache(in: manager, options: HTTPOptions(staleIfError: .seconds(86_400)))
        let port = origin.port
        @Sendable func page(_ path: String) async throws -> HTTPResponse {
            guard let url = URL(string: "http://localhost:\(port)\(path)") else { throw Socket.Failure() }
            return try await http.response(for: HTTPRequest(url)) { request in try await send(request, port) }
        }

        try await withThrowingTaskGroup(of: HTTPResponse.self) { group in
            for _ in 1...1_000 { group.addTask { try await page("/jars") } }
            try await group.waitForAll()
        }
        print("1,000 requests at once: \(origin.counts.withLock { $0.all }) went to the server.")

        late.add(2, ordering: .relaxed)
        _ = try await page("/jars")
        let counts = origin.counts.withLock { $0 }
        print("After its second: \(counts.all) in all, \(counts.notModified) of them not modified.")

        origin.stop()
        late.add(2, ordering: .relaxed)
        let stale = try await page("/jars")
        print("While the server is down: \(String(decoding: stale.body, as: UTF8.self))")
        print("The cache says: \(stale.field("Cache-Status") ?? "")")
        do {
            _ = try await page("/lids")
        } catch {
            print("A page that was never fetched: \(error)")
        }
        try await manager.close()
    }

    /// The client: it writes the request as it is, and reads the answer.
    private static func send(_ request: HTTPRequest, _ port: UInt16) async throws -> HTTPResponse {
        var text = "\(request.method) \(request.url.path) HTTP/1.1\r\nHost: localhost\r\n"
        for (name, value) in request.fields { text += "\(name): \(value)\r\n" }
        let answer = try await ask(text + "\r\n", port).components(separatedBy: "\r\n\r\n")
        let lines = answer[0].components(separatedBy: "\r\n")
        guard let status = lines[0].split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
            throw Socket.Failure()
        }
        let fields = lines.dropFirst().map { line in
            let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            return (parts[0], parts.count > 1 ? parts[1] : "")
        }
        let body = answer.dropFirst().joined(separator: "\r\n\r\n")
        return HTTPResponse(status: status, fields: fields, body: Data(body.utf8))
    }
}

/// Asks on a thread of its own: a socket blocks, and no task may.
private func ask(_ request: String, _ port: UInt16) async throws -> String {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread {
            continuation.resume(with: Result { try Socket.ask(request, port: port) })
        }
    }
}
