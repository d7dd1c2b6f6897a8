internal import Foundation

/// The calls of the system that a link needs.
///
/// Safety: The list of addresses is read before it is freed, the address of a path is used while it is lent, and bytes are read inside the call that lends them.
enum RedisSocket {
    /// Returns the two ends of a pipe, which do not block; nil if there are no more files.
    static func pipe() -> (read: Int32, write: Int32)? {
        var ends: [Int32] = [0, 0]
        guard Foundation.pipe(&ends) == 0 else { return nil }
        for end in ends { setUp(end) }
        return (ends[0], ends[1])
    }

    private static func setUp(_ file: Int32) {
        _ = fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK)
        _ = fcntl(file, F_SETFD, FD_CLOEXEC)
    }

    /// Connects to a socket of this machine, or to the first address of a host that answers.
    ///
    /// - Parameter isWritable: Waits until a socket can be written to, and returns whether that came to be.
    static func connect(
        to address: RedisAddress, _ isWritable: (Int32) -> Bool
    ) -> (socket: Int32?, failure: String) {
        if let path = address.path { return connect(toPath: path, isWritable) }
        var (hints, list) = (addrinfo(), UnsafeMutablePointer<addrinfo>?.none)
        #if canImport(Darwin)
        hints.ai_socktype = SOCK_STREAM
        #else
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #endif
        let code = getaddrinfo(address.host, "\(address.port)", &hints, &list)
        guard code == 0 else { return (nil, "The host has no address: \(String(cString: gai_strerror(code))).") }
        defer { freeaddrinfo(list) }
        var (next, failure) = (list, "The host has no address.")
        while let info = next?.pointee {
            let (socket, error) = open(info, isWritable)
            if let socket { return (socket, "") }
            failure = Self.failure(error)
            next = info.ai_next
        }
        return (nil, failure)
    }

    private static func connect(
        toPath path: String, _ isWritable: (Int32) -> Bool
    ) -> (socket: Int32?, failure: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        var info = addrinfo()
        info.ai_family = AF_UNIX
        #if canImport(Darwin)
        info.ai_socktype = SOCK_STREAM
        #else
        info.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #endif
        info.ai_addrlen = socklen_t(MemoryLayout<sockaddr_un>.size)
        return withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                info.ai_addr = address
                let (socket, error) = open(info, isWritable)
                return (socket, socket == nil ? failure(error) : "")
            }
        }
    }

    private static func failure(_ error: Int32) -> String {
        error == 0 ? "The host has not answered in time." : "\(String(cString: strerror(error)))."
    }

    /// Returns a socket that is connected, or the number of an error, which is 0 if there was no answer.
    private static func open(_ info: addrinfo, _ isWritable: (Int32) -> Bool) -> (socket: Int32?, error: Int32) {
        var (yes, error, length) = (Int32(1), Int32(0), socklen_t(MemoryLayout<Int32>.size))
        #if canImport(Darwin)
        let file = socket(info.ai_family, info.ai_socktype, info.ai_protocol)
        if file < 0 { return (nil, errno) }
        setUp(file)
        _ = setsockopt(file, SOL_SOCKET, SO_NOSIGPIPE, &yes, length)
        #else
        let kind = info.ai_socktype | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let file = socket(info.ai_family, kind, info.ai_protocol)
        if file < 0 { return (nil, errno) }
        #endif
        _ = setsockopt(file, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, length)
        if Foundation.connect(file, info.ai_addr, info.ai_addrlen) != 0 { error = errno }
        if error == EINPROGRESS {
            error = 0
            if isWritable(file), getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &length) == 0, error == 0 {
                return (file, 0)
            }
        } else if error == 0 {
            return (file, 0)
        }
        _ = close(file)
        return (nil, error)
    }

    /// Sends what the socket takes now, and returns the number of bytes; -1 if the connection is lost.
    static func send(_ socket: Int32, _ bytes: ArraySlice<UInt8>) -> Int {
        #if canImport(Darwin)
        let flags = MSG_DONTWAIT
        #else
        let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
        #endif
        let count = bytes.withUnsafeBytes { Foundation.send(socket, $0.baseAddress, $0.count, flags) }
        return count >= 0 ? count : isTransient ? 0 : -1
    }

    /// Reads what has arrived, and returns the number of bytes; nil if the connection is lost.
    static func receive(_ socket: Int32, _ bytes: UnsafeMutableRawBufferPointer) -> Int? {
        let count = recv(socket, bytes.baseAddress, bytes.count, 0)
        return count > 0 ? count : count < 0 && isTransient ? 0 : nil
    }

    private static var isTransient: Bool { [EAGAIN, EWOULDBLOCK, EINTR].contains(errno) }
}
