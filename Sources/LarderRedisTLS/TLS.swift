public import Foundation
@_exported public import LarderRedis

#if !canImport(Darwin)
internal import LarderCOpenSSL
#endif

/// What a node checks of its server, and shows it, when a connection is encrypted.
public struct TLSOptions: Hashable, Sendable {
    /// What is checked of the certificate of the server.
    public enum Check: Hashable, Sendable {
        /// That an authority has signed it, and that it is for this host.
        case authorityAndHost
        /// That an authority has signed it. Any server with such a certificate can take the place of this one.
        case authority
        /// Nothing: the connection can be read and changed by what is between the two sides.
        case none
    }

    /// What is checked of the certificate of the server.
    public var check: Check

    /// A file with the certificates of the authorities that are trusted, in PEM; nil trusts those of the system.
    public var authorities: URL?

    /// A file with the certificate that this node shows, and those between it and its authority, in PEM; nil for none.
    public var certificate: URL?

    /// A file with the key of ``certificate``, in PEM.
    public var key: URL?

    /// The name that the certificate of the server is for, and that the server is asked for; nil for the host of the address.
    public var serverName: String?

    /// Creates options, each with its default.
    ///
    /// The files are read for each connection, so that they can be replaced. A connection that goes on with the session of an earlier one
    /// shows and checks no certificate: they are looked at again when the server ends the session, after some hours.
    public init(
        check: Check = .authorityAndHost, authorities: URL? = nil, certificate: URL? = nil, key: URL? = nil,
        serverName: String? = nil
    ) {
        (self.check, self.authorities, self.certificate, self.key) = (check, authorities, certificate, key)
        self.serverName = serverName
    }
}

extension RedisSecurity {
    /// TLS of version 1.2 or 1.3, by the system's OpenSSL.
    ///
    /// ```swift
    /// let tier = RedisTier(url: "rediss://cache.example.com:6379", prefix: "app", security: .tls())
    /// ```
    ///
    /// A node keeps the session of a server, so that its next connection needs less. On Apple's systems there is no OpenSSL: the tier
    /// stays unavailable, and its `failure` says so.
    ///
    /// - Parameter options: What is checked and shown; by default the authorities of the system, and the host.
    public static func tls(_ options: TLSOptions = .init()) -> RedisSecurity {
        #if canImport(Darwin)
        RedisSecurity { _ throws(Failure) in
            throw Failure("TLS needs OpenSSL, which Apple's systems do not have. Reach the server through a tunnel.")
        }
        #else
        let sessions = TLSSessions()
        return RedisSecurity { host throws(Failure) in try TLSCipher(options, host, sessions) }
        #endif
    }
}
