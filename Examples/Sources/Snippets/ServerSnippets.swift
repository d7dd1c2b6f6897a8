import Dispatch
import Foundation
import Larder

/// In place of swift-log.
struct Logger: Sendable {
    enum Level: Sendable { case debug, info, warning, error }

    func log(level: Level, _ message: String) { print(level, message) }
}

extension Logger.Level {
    init(_ level: LogMessage.Level) {
        switch level {
        case .debug: self = .debug
        case .info: self = .info
        case .warning: self = .warning
        case .error: self = .error
        }
    }
}

/// The snippets of the guide about servers.
enum ServerSnippets {
    private struct Surprise: Error {}

    static func run(_ file: URL) async throws {
        let logger = Logger()
        let configuration = CacheManager.Configuration(
            sizeLimit: 2 << 30, freeSpaceFloor: 256 << 20,
            log: { message in logger.log(level: Logger.Level(message.level), "\(message.message)") })
        let manager = try await CacheManager.open(url: file, configuration: configuration)

        let pages: Cache<String, String> = try await manager.cache(named: "pages", version: "1", maxAge: .minutes(1))
        let page = pages.generator(GenerationPolicy(staleFor: .seconds(30), staleOnError: .seconds(3600))) { path in
            try await render(path)
        }
        let body = try await page("/news")
        guard body == "page /news" else { throw Surprise() }

        let articles: Cache<Int, String> = try await manager.cache(named: "articles", version: "1", maxAge: .days(1))
        for info in try await manager.cacheInfo() {
            print(info.name, info.count, info.sizeOnDisk)
        }
        let statistics = articles.statistics
        print(statistics.memoryHits, statistics.diskHits, statistics.misses)

        manager.handleMemoryPressure(.warning)

        let folder = ProcessInfo.processInfo.environment["CACHE_FOLDER"] ?? "/var/cache/app"
        let store = URL(fileURLWithPath: folder).appendingPathComponent("app.sqlite")
        guard store.lastPathComponent == "app.sqlite" else { throw Surprise() }

        let signals = [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { @Sendable in stop() }
            source.resume()
            return source
        }
        defer { for source in signals { source.cancel() } }

        let listening = Task { await listen(to: manager) }
        try await withTaskCancellationHandler {
            do { try await serve() } catch { print(error) }
            try await manager.close()
        } onCancel: {
            stop()
        }
        await listening.value
    }

    private static func listen(to manager: CacheManager) async {
        for await event in manager.events {
            switch event.kind {
            case .recovered, .corruptEntry, .writeFailed, .limitReached: alert(event.message)
            default: break
            }
        }
    }

    private static func render(_ path: String) async throws -> String { "page \(path)" }
    private static func alert(_ text: String) { print(text) }
    private static func serve() async throws {}
    private static func stop() {}
}
