import Foundation
import LarderLocks

/// Stands between a node and a server, and does to the bytes what the test says.
final class Proxy: Sendable {
    /// What is done to a piece of the bytes on their way; it returns what goes on, or nil to end the connection.
    typealias Change = @Sendable (_ bytes: [UInt8], _ toServer: Bool, _ connection: Int) -> [UInt8]?

    private let server: FakeServer
    private let state: State

    private final class State: Sendable {
        /// In a structure, see the house rules.
        struct Way { var change: Change }

        let way: Mutex<Way>

        init(_ change: @escaping Change) { way = Mutex(Way(change: change)) }
    }

    var url: String { "redis://:secret@127.0.0.1:\(server.port)" }

    /// - Parameter port: That of the server.
    convenience init(to port: Int, _ change: @escaping Change = { bytes, _, _ in bytes }) throws {
        try self.init(to: { port }, change)
    }

    /// - Parameter port: Returns that of the server for each new connection.
    init(to port: @escaping @Sendable () -> Int, _ change: @escaping Change = { bytes, _, _ in bytes }) throws {
        let state = State(change)
        self.state = state
        server = try FakeServer { client, number in
            guard let upstream = FakeServer.Connection(to: port()) else { return }
            let back = DispatchGroup()
            back.enter()
            Thread.detachNewThread {
                Self.pump(upstream, client, toServer: false, number, state)
                back.leave()
            }
            Self.pump(client, upstream, toServer: true, number, state)
            back.wait()
            upstream.close()
        }
    }

    /// Changes what is done to the bytes from now on.
    func change(_ change: @escaping Change) { state.way.withLock { $0.change = change } }

    /// Ends all connections.
    func cut() { server.cut() }

    private static func pump(
        _ from: FakeServer.Connection, _ to: FakeServer.Connection, toServer: Bool, _ number: Int, _ state: State
    ) {
        while let bytes = from.readBytes() {
            let change = state.way.withLock { $0.change }
            guard let changed = change(bytes, toServer, number) else { break }
            to.write(changed)
        }
        from.end()
        to.end()
    }
}
