#if !canImport(Darwin)
internal import Foundation
internal import LarderCOpenSSL
internal import LarderLocks
internal import LarderRedis

/// An object of OpenSSL.
///
/// Safety: Its owner uses it under a lock alone, and frees it.
private struct TLSObject: @unchecked Sendable {
    let pointer: OpaquePointer

    init?(_ pointer: OpaquePointer?) {
        guard let pointer else { return nil }
        self.pointer = pointer
    }
}

/// One connection of OpenSSL, between two memories: what has arrived, and what has to be sent.
///
/// Safety: The objects of OpenSSL are used under the lock alone, and are freed with this one. Bytes are used while they are lent.
final class TLSCipher: RedisCipher {
    private struct State {
        /// It owns the two memories.
        let connection, arrived, outgoing: TLSObject
        var isReady = false
    }

    private let state: Mutex<State>
    private let name: String
    private let sessions: TLSSessions

    init(_ options: TLSOptions, _ host: String, _ sessions: TLSSessions) throws(RedisSecurity.Failure) {
        name = options.serverName ?? host
        self.sessions = sessions
        if name.isEmpty || name.contains("\0") {
            throw RedisSecurity.Failure(
                "The name of the server is empty. Leave serverName out for that of the address.")
        }
        ERR_clear_error()
        guard let context = SSL_CTX_new(TLS_client_method()) else { throw Self.failure("TLS cannot begin") }
        defer { SSL_CTX_free(context) }
        try Self.setUp(context, options)
        guard let object = TLSObject(SSL_new(context)), let arrived = TLSObject(BIO_new(BIO_s_mem())),
            let outgoing = TLSObject(BIO_new(BIO_s_mem()))
        else { throw Self.failure("TLS cannot begin") }
        let connection = object.pointer
        // Without bytes a read is to be tried again, and is no end.
        for memory in [arrived, outgoing] { BIO_ctrl(memory.pointer, BIO_C_SET_BUF_MEM_EOF_RETURN, -1, nil) }
        SSL_set_bio(connection, arrived.pointer, outgoing.pointer)
        SSL_set_connect_state(connection)
        let isAddress = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection), name) == 1
        if !isAddress {
            name.withCString { name in
                let name = UnsafeMutableRawPointer(mutating: name)
                _ = SSL_ctrl(connection, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), name)
            }
        }
        if options.check != .authorityAndHost {
            _ = X509_VERIFY_PARAM_set1_ip(SSL_get0_param(connection), nil, 0)
        } else if !isAddress, SSL_set1_host(connection, name) != 1 {
            SSL_free(connection)
            throw RedisSecurity.Failure("The name \"\(name)\" is none that a certificate can be for.")
        }
        sessions.resume(connection, name)
        state = Mutex(State(connection: object, arrived: arrived, outgoing: outgoing))
    }

    deinit {
        state.withLock { state in
            if state.isReady { sessions.keep(state.connection.pointer, name) }
            // A session whose connection was not ended is not used again.
            SSL_set_shutdown(state.connection.pointer, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
            SSL_free(state.connection.pointer)
        }
    }

    private static func setUp(_ context: OpaquePointer, _ options: TLSOptions) throws(RedisSecurity.Failure) {
        // A key with a password would be asked for on the terminal.
        SSL_CTX_set_default_passwd_cb(context) { _, _, _, _ in -1 }
        _ = SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
        _ = SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
        SSL_CTX_set_verify(context, options.check == .none ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nil)
        if let file = options.authorities {
            guard SSL_CTX_load_verify_file(context, file.path) == 1 else {
                throw failure("The authorities in \(file.path) cannot be read")
            }
        } else if options.check != .none {
            SSL_CTX_set_default_verify_paths(context)
        }
        guard options.certificate != nil || options.key != nil else { return }
        guard let certificate = options.certificate, let key = options.key else {
            throw RedisSecurity.Failure("A certificate needs its key, and a key its certificate: give both files.")
        }
        guard SSL_CTX_use_certificate_chain_file(context, certificate.path) == 1 else {
            throw failure("The certificate in \(certificate.path) cannot be read")
        }
        guard SSL_CTX_use_PrivateKey_file(context, key.path, SSL_FILETYPE_PEM) == 1 else {
            throw failure("The key in \(key.path) cannot be read, needs a password, or is not that of the certificate")
        }
    }

    // MARK: RedisCipher

    var isReady: Bool { state.withLock { $0.isReady } }

    func take(_ bytes: UnsafeRawBufferPointer) {
        if bytes.isEmpty { return }
        // A memory takes all, and a link reads it before it takes more.
        state.withLock { _ = BIO_write($0.arrived.pointer, bytes.baseAddress, Int32(bytes.count)) }
    }

    func read(into bytes: UnsafeMutableRawBufferPointer) throws(RedisSecurity.Failure) -> Int {
        let result: Result<Int, RedisSecurity.Failure> = state.withLock { state in
            ERR_clear_error()
            if !state.isReady {
                let code = SSL_do_handshake(state.connection.pointer)
                if code != 1 { return Self.progress(of: state.connection.pointer, code) }
                state.isReady = true
            }
            let count = SSL_read(state.connection.pointer, bytes.baseAddress, Int32(bytes.count))
            return count > 0 ? .success(Int(count)) : Self.progress(of: state.connection.pointer, count)
        }
        return try result.get()
    }

    func seal(_ bytes: [UInt8]) -> Bool {
        state.withLock { state in
            ERR_clear_error()
            // A memory takes all, so nothing is left to be tried again.
            return bytes.isEmpty || SSL_write(state.connection.pointer, bytes, Int32(bytes.count)) == Int32(bytes.count)
        }
    }

    func takeOutgoing() -> [UInt8] {
        state.withLock { state in
            let count = Int(BIO_ctrl_pending(state.outgoing.pointer))
            if count == 0 { return [] }
            return [UInt8](unsafeUninitializedCapacity: count) { bytes, length in
                length = max(0, Int(BIO_read(state.outgoing.pointer, bytes.baseAddress, Int32(count))))
            }
        }
    }

    // MARK: Failures

    /// Returns 0 if more bytes are needed, or why there will be none.
    private static func progress(of connection: OpaquePointer, _ code: Int32) -> Result<Int, RedisSecurity.Failure> {
        switch SSL_get_error(connection, code) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return .success(0)
        case SSL_ERROR_ZERO_RETURN: return .failure(RedisSecurity.Failure("The connection was ended."))
        default: break
        }
        let reason = Int32(ERR_peek_last_error() & 0x7f_ffff)
        if reason == SSL_R_CERTIFICATE_VERIFY_FAILED {
            return .failure(RedisSecurity.Failure(sentence(ofVerdict: SSL_get_verify_result(connection))))
        }
        if reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_PACKET_LENGTH_TOO_LONG {
            return .failure(RedisSecurity.Failure("The server does not speak TLS at this port. Use redis://."))
        }
        // An alert of the other side has its number behind a thousand.
        if (1042...1048).contains(reason) || reason == 1116 {
            return .failure(failure("The server does not accept the certificate of this node"))
        }
        return .failure(failure("The server has refused TLS"))
    }

    private static func sentence(ofVerdict verdict: Int) -> String {
        switch Int32(verdict) {
        case X509_V_ERR_CERT_HAS_EXPIRED: "The certificate of the server has expired."
        case X509_V_ERR_CERT_NOT_YET_VALID: "The certificate of the server is not valid yet. Look at the clock."
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            "The certificate of the server is for another host. Use its name in the address, or set serverName."
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            "The certificate of the server is of an authority that is not trusted. Set authorities to its file."
        default:
            "The certificate of the server is refused: \(String(cString: X509_verify_cert_error_string(verdict)))."
        }
    }

    private static func failure(_ what: String) -> RedisSecurity.Failure {
        let error = ERR_peek_last_error()
        guard error != 0, let reason = ERR_reason_error_string(error) else { return RedisSecurity.Failure("\(what).") }
        return RedisSecurity.Failure("\(what): \(String(cString: reason)).")
    }
}

/// The sessions of servers that were connected before.
///
/// Safety: A session is used under the lock alone, and is freed with this object or when another one takes its place.
final class TLSSessions: Sendable {
    private let sessions = Mutex<[String: TLSObject]>([:])

    deinit { sessions.withLock { sessions in for session in sessions.values { SSL_SESSION_free(session.pointer) } } }

    /// Lets a connection go on with the session of a server.
    ///
    /// A server can refuse a session whatever its certificate says, so it is offered once: a connection that is ready keeps one again.
    func resume(_ connection: OpaquePointer, _ name: String) {
        guard let session = sessions.withLock({ $0.removeValue(forKey: name) }) else { return }
        _ = SSL_set_session(connection, session.pointer)
        SSL_SESSION_free(session.pointer)
    }

    /// Keeps the session of a connection for the next one.
    func keep(_ connection: OpaquePointer, _ name: String) {
        guard let session = TLSObject(SSL_get1_session(connection)) else { return }
        let old = sessions.withLock { sessions in
            SSL_SESSION_is_resumable(session.pointer) == 1 ? sessions.updateValue(session, forKey: name) : session
        }
        if let old { SSL_SESSION_free(old.pointer) }
    }
}
#endif
