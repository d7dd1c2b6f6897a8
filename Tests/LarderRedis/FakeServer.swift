import Foundation
import LarderLocks

/// A server on this machine that does to each connection what the test says.
final class FakeServer: Sendable {
    /// A connection, used by the thread that serves it.
    final class Connection: Sendable {
        fileprivate let socket: Int32

        fileprivate init(_ socket: Int32) { self.socket = socket }

        /// Returns what has arrived; nil if the client has gone.
        func read() -> String? {
            var bytes = [UInt8](repeating: 0, count: 1 << 16)
            let count = recv(socket, &bytes, bytes.count, 0)
            return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
        }

        /// Reads until all of some texts have arrived.
        @discardableResult
        func read(until texts: String...) -> String? {
            var found = ""
            while !texts.allSatisfy(found.contains) {
                guard let more = read() else { return nil }
                found += more
            }
            return found
        }

        func write(_ text: String) {
            var bytes = Array(text.utf8)[...]
            while !bytes.isEmpty {
                let count = bytes.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Self.flags) }
                if count <= 0 { return }
                bytes = bytes.dropFirst(count)
            }
        }

        /// Answers the PING of a new connection.
        func greet() {
            read(until: "PING\r\n")
            write("+PONG\r\n")
        }

        #if canImport(Darwin)
        private static let flags = Int32(0)
        #else
        private static let flags = Int32(MSG_NOSIGNAL)
        #endif
    }

    private let listener: Int32
    let port: Int
    private let sockets = Shared(Mutex<Set<Int32>>([]))
    private let isClosed = Shared(Atomic(false))

    /// - Parameter serve: Called on a thread for each connection, with its number; the connection ends with it.
    init(_ serve: @escaping @Sendable (Connection, Int) -> Void) throws {
        #if canImport(Glibc)
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
        listener = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_in()
        (address.sin_family, address.sin_addr.s_addr) = (sa_family_t(AF_INET), UInt32(0x7F00_0001).bigEndian)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isBound = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        guard isBound else { throw POSIXError(.EADDRINUSE) }
        port = Int(UInt16(bigEndian: address.sin_port))
        let (sockets, isClosed) = (sockets, isClosed)
        Thread.detachNewThread {
            var number = 0
            while true {
                let socket = accept(listener, nil, nil)
                if socket < 0 || isClosed.value.load(ordering: .relaxed) { break }
                sockets.value.withLock { _ = $0.insert(socket) }
                let connection = number
                number += 1
                Thread.detachNewThread {
                    serve(Connection(socket), connection)
                    // Each thread closes its own socket, so no number is used twice.
                    sockets.value.withLock { _ = $0.remove(socket) }
                    close(socket)
                }
            }
            close(listener)
        }
    }

    /// Ends all connections.
    func cut() { sockets.value.withLock { for socket in $0 { shutdown(socket, Int32(SHUT_RDWR)) } } }

    deinit {
        isClosed.value.store(true, ordering: .relaxed)
        cut()
        shutdown(listener, Int32(SHUT_RDWR))
    }

    /// What the server shares with its threads.
    private final class Shared<Value: ~Copyable & Sendable>: Sendable {
        let value: Value
        init(_ value: consuming Value) { self.value = value }
    }
}
