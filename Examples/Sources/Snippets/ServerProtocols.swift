import Foundation

/// In place of swift-metrics.
final class Gauge: Sendable {
    init(label: String, dimensions: [(String, String)]) {}
    func record(_ value: Double) {}
}

/// In place of swift-metrics.
final class Timer: Sendable {
    init(label: String, dimensions: [(String, String)]) {}
    func recordNanoseconds(_ value: Int64) {}
}

/// In place of ServiceLifecycle.
protocol Service: Sendable { func run() async throws }

/// In place of ServiceLifecycle: returns when the service is to end.
func gracefulShutdown() async throws {}

/// In place of Hummingbird.
protocol PersistDriver: Service {
    func create(key: String, value: some Codable & Sendable, expires: Duration?) async throws
    func set(key: String, value: some Codable & Sendable, expires: Duration?) async throws
    func get<Object: Codable & Sendable>(key: String, as object: Object.Type) async throws -> Object?
    func remove(key: String) async throws
    func shutdown() async throws
}

/// In place of Hummingbird.
struct PersistError: Error {
    static let duplicate = PersistError()
}

/// In place of Vapor and SwiftNIO.
enum Vapor {
    struct EventLoopFuture<Value: Sendable>: Sendable { let task: Task<Value, any Error> }

    struct EventLoop: Sendable {
        func makeFutureWithTask<Value: Sendable>(
            _ body: @escaping @Sendable () async throws -> Value
        ) -> EventLoopFuture<Value> { EventLoopFuture(task: Task { try await body() }) }
    }

    struct Request: Sendable { let eventLoop: EventLoop }

    struct CacheExpirationTime: Sendable { let seconds: Int }

    protocol Cache: Sendable {
        func get<T: Decodable & Sendable>(_ key: String, as type: T.Type) -> EventLoopFuture<T?>
        func set<T: Encodable & Sendable>(
            _ key: String, to value: T?, expiresIn time: CacheExpirationTime?
        ) -> EventLoopFuture<Void>
        func set<T: Encodable & Sendable>(_ key: String, to value: T?) -> EventLoopFuture<Void>
        func `for`(_ request: Request) -> Self
    }
}
