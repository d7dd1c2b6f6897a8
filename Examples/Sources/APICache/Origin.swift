import Foundation
import Synchronization

/// An HTTP server on this machine with one article, which it can be asked for conditionally.
final class Origin: Sendable {
    let port: UInt16
    /// The number of requests, and of those that were answered by 304.
    let counts = Mutex((all: 0, notModified: 0))
    private let listener: Int32
    private static let text = "Jars keep what shelves hold."
    private static let tag = "\"v1\""

    init() throws {
        // A client that has gone must not end the program.
        signal(SIGPIPE, SIG_IGN)
        listener = socket(AF_INET, Socket.stream, 0)
        var address = Socket.address(port: 0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { [listener] address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, size) == 0 && listen(listener, 1024) == 0
                    && getsockname(listener, address, &size) == 0
            }
        }
        guard listener >= 0, isBound else { throw Socket.Failure() }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in serve() }
    }

    /// Answers no more requests.
    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    private func serve() {
        while true {
            let client = accept(listener, nil, nil)
            if client < 0 { return }
            let request = Socket.read(client, until: "\r\n\r\n")
            let isKnown = request.contains("If-None-Match: \(Self.tag)")
            counts.withLock { $0 = ($0.all + 1, $0.notModified + (isKnown ? 1 : 0)) }
            let head = "ETag: \(Self.tag)\r\nCache-Control: max-age=1\r\nConnection: close\r\n\r\n"
            Socket.write(
                isKnown ? "HTTP/1.1 304 Not Modified\r\n\(head)" : "HTTP/1.1 200 OK\r\n\(head)\(Self.text)", to: client)
            close(client)
        }
    }
}

/// The system's sockets.
enum Socket {
    struct Failure: Error {}

    #if os(Linux)
    static let stream = Int32(SOCK_STREAM.rawValue)
    #else
    static let stream = SOCK_STREAM
    #endif

    static func address(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    /// Sends a request and returns the whole answer.
    static func ask(_ request: String, port: UInt16) throws -> String {
        let client = socket(AF_INET, stream, 0)
        defer { close(client) }
        var address = address(port: port)
        let isConnected = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else { throw Failure() }
        write(request, to: client)
        return read(client, until: nil)
    }

    static func write(_ text: String, to socket: Int32) {
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, 0) }
    }

    static func read(_ socket: Int32, until end: String?) -> String {
        var (text, buffer) = ("", [UInt8](repeating: 0, count: 4096))
        while true {
            let count = recv(socket, &buffer, buffer.count, 0)
            if count <= 0 { return text }
            text += String(decoding: buffer[..<count], as: UTF8.self)
            if let end, text.contains(end) { return text }
        }
    }
}
