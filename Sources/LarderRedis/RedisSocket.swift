internal import Foundation

/// The calls of the system that a link needs.
///
/// Safety: The list of addresses is read before it is freed, and bytes are read inside the call that lends them.
enum RedisSocket {
    static func makeNonblocking(_ file: Int32) {
        _ = fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK)
        _ = fcntl(file, F_SETFD, FD_CLOEXEC)
    }

    /// Connects to the first address of a host that answers; nil if none does.
    ///
    /// - Parameter isWritable: Waits until a socket can be written to, and returns whether that came to be.
    static func connect(to address: RedisAddress, _ isWritable: (Int32) -> Bool) -> Int32? {
        var (hints, list) = (addrinfo(), UnsafeMutablePointer<addrinfo>?.none)
        #if canImport(Glibc)
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #else
        hints.ai_socktype = SOCK_STREAM
        #endif
        guard getaddrinfo(address.host, "\(address.port)", &hints, &list) == 0 else { return nil }
        defer { freeaddrinfo(list) }
        var next = list
        while let info = next?.pointee {
            if let file = open(info, isWritable) { return file }
            next = info.ai_next
        }
        return nil
    }

    private static func open(_ info: addrinfo, _ isWritable: (Int32) -> Bool) -> Int32? {
        let file = socket(info.ai_family, info.ai_socktype, info.ai_protocol)
        if file < 0 { return nil }
        makeNonblocking(file)
        var (yes, error, length) = (Int32(1), Int32(0), socklen_t(MemoryLayout<Int32>.size))
        _ = setsockopt(file, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, length)
        #if canImport(Darwin)
        _ = setsockopt(file, SOL_SOCKET, SO_NOSIGPIPE, &yes, length)
        #endif
        let isConnected =
            Foundation.connect(file, info.ai_addr, info.ai_addrlen) == 0 || (errno == EINPROGRESS && isWritable(file))
        if isConnected, getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &length) == 0, error == 0 { return file }
        _ = close(file)
        return nil
    }

    /// Sends what the socket takes now, and returns the number of bytes; -1 if the connection is lost.
    static func send(_ socket: Int32, _ bytes: Data) -> Int {
        #if canImport(Darwin)
        let flags = MSG_DONTWAIT
        #else
        let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
        #endif
        let count = bytes.withUnsafeBytes { Foundation.send(socket, $0.baseAddress, $0.count, flags) }
        return count >= 0 ? count : [EAGAIN, EWOULDBLOCK, EINTR].contains(errno) ? 0 : -1
    }

    /// Returns what has arrived; nil if the connection is lost.
    static func receive(_ socket: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(socket, &bytes, bytes.count, 0)
        if count > 0 { return Array(bytes.prefix(count)) }
        return count < 0 && [EAGAIN, EWOULDBLOCK, EINTR].contains(errno) ? [] : nil
    }
}
