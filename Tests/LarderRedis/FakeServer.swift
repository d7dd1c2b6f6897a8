import Foundation
import LarderLocks

/// A server on this machine that does to each connection what the test says.
final class FakeServer: Sendable {
    /// A connection, used by the thread that serves it.
    final class Connection: Sendable {
        fileprivate let socket: Int32

        fileprivate init(_ socket: Int32) {
            self.socket = socket
            #if canImport(Darwin)
            var yes = Int32(1)
            setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &yes, socklen_t(MemoryLayout<Int32>.size))
            #endif
        }

        /// Connects to a port of this machine; nil if nothing listens there.
        convenience init?(to port: Int) {
            let socket = FakeServer.socket()
            let isConnected = FakeServer.withAddress(port) { connect(socket, $0, $1) == 0 }
            self.init(socket)
            if isConnected { return }
            close()
            return nil
        }

        /// Returns what has arrived; nil if the other side has gone.
        func readBytes() -> [UInt8]? {
            var bytes = [UInt8](repeating: 0, count: 1 << 16)
            let count = recv(socket, &bytes, bytes.count, 0)
            return count > 0 ? Array(bytes.prefix(count)) : nil
        }

        func read() -> String? { readBytes().map { String(decoding: $0, as: UTF8.self) } }

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

        /// - Returns: False if the other side has ended the connection.
        @discardableResult
        func write(_ text: String) -> Bool { write(Array(text.utf8)) }

        @discardableResult
        func write(_ all: [UInt8]) -> Bool {
            var bytes = all[...]
            while !bytes.isEmpty {
                let count = bytes.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Self.flags) }
                if count <= 0 { return false }
                bytes = bytes.dropFirst(count)
            }
            return true
        }

        /// Ends the connection, for a thread that reads from it.
        func end() { shutdown(socket, Int32(SHUT_RDWR)) }

        func close() { Foundation.close(socket) }

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

    /// - Parameters:
    ///   - port: The port; 0 for any.
    ///   - serve: Called on a thread for each connection, with its number; the connection ends with it.
    init(on port: Int = 0, _ serve: @escaping @Sendable (Connection, Int) -> Void) throws {
        listener = Self.socket()
        var (address, length) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
        let listener = listener
        let isBound =
            Self.withAddress(port) { bind(listener, $0, $1) == 0 && listen(listener, 64) == 0 }
            && withUnsafeMutablePointer(to: &address) { address in
                address.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &length) == 0 }
            }
        if !isBound {
            close(listener)
            throw POSIXError(.EADDRINUSE)
        }
        self.port = Int(UInt16(bigEndian: address.sin_port))
        let (sockets, isClosed) = (sockets, isClosed)
        Thread.detachNewThread {
            var number = 0
            while true {
                let socket = accept(listener, nil, nil)
                if isClosed.value.load(ordering: .relaxed) { break }
                // The other side may have gone in the meantime.
                if socket < 0 { continue }
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

    private static func socket() -> Int32 {
        #if canImport(Glibc)
        Foundation.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
        Foundation.socket(AF_INET, SOCK_STREAM, 0)
        #endif
    }

    /// Lends the address of a port of this machine.
    private static func withAddress(_ port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Bool) -> Bool {
        var address = sockaddr_in()
        (address.sin_family, address.sin_addr.s_addr) = (sa_family_t(AF_INET), UInt32(0x7F00_0001).bigEndian)
        address.sin_port = UInt16(port).bigEndian
        return withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
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
