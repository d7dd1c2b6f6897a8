import Foundation
import Larder
import Synchronization

/// An answer of the server: what a program keeps of it.
struct Page: Codable, Sendable { var text: String }

/// A client that caches what an HTTP server sends, by `ETag` and `Cache-Control`.
@main
struct APICache {
    static func main() async throws {
        let origin = try Origin()
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("larder-api/pages.sqlite")
        // A clock that stands still until a second is to pass. What fails is printed below, and needs no log.
        let late = Atomic(0)
        let manager = try CacheManager(
            url: url,
            configuration: .init(
                clock: { Date(timeIntervalSince1970: 1_700_000_000 + Double(late.load(ordering: .relaxed))) },
                log: { _ in }))
        let pages: Cache<String, Page> = try await manager.cache(named: "pages", version: "1", maxAge: .minutes(5))
        let port = origin.port
        // Stale pages are better than none, for a day.
        let page = pages.generator(GenerationPolicy(staleOnError: .seconds(86_400))) { path, old in
            try await fetch(path, old, port)
        }

        try await withThrowingTaskGroup(of: Page?.self) { group in
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
        print("While the server is down: \(try await page("/jars")?.text ?? "nothing")")
        do {
            _ = try await page("/lids")
        } catch {
            print("A page that was never fetched: \(error)")
        }
        try await manager.close()
    }

    /// Asks the server for a page, or whether the one that is known is still good.
    private static func fetch(
        _ path: String, _ old: CacheEntry<String, Page>?, _ port: UInt16
    ) async throws -> Generated<Page> {
        var request = "GET \(path) HTTP/1.1\r\nHost: localhost\r\n"
        if let tag = old?.extendedData { request += "If-None-Match: \(String(decoding: tag, as: UTF8.self))\r\n" }
        let page = Answer(try await ask(request + "\r\n", port))
        if page.status == 304 { return .notModified }
        guard page.status == 200 else { throw Socket.Failure() }
        return .value(Page(text: page.body), maxAge: page.maxAge, extendedData: page.tag.map { Data($0.utf8) })
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

/// An answer of a server in its parts.
private struct Answer: Sendable {
    let status: Int
    let tag: String?
    let maxAge: MaxAge?
    let body: String

    init(_ text: String) {
        let parts = text.components(separatedBy: "\r\n\r\n")
        let lines = parts[0].components(separatedBy: "\r\n")
        func header(_ name: String) -> String? {
            lines.first { $0.hasPrefix(name + ": ") }.map { String($0.dropFirst(name.count + 2)) }
        }
        status = lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        tag = header("ETag")
        maxAge = header("Cache-Control").flatMap { Double($0.dropFirst("max-age=".count)) }.map { .seconds($0) }
        body = parts.dropFirst().joined(separator: "\r\n\r\n")
    }
}
