package import Foundation

/// Where a server is, and as whom it is asked: `redis://user:password@host:port/database`, `rediss:` with TLS, or `unix:///path?db=1`.
package struct RedisAddress: Hashable, Sendable {
    /// The host; empty for a socket of this machine.
    package let host: String
    package let port: Int
    /// The path of a socket of this machine.
    package let path: String?
    package var user: String?
    package var password: String?
    package let database: Int
    /// A Boolean value that indicates whether the connection is encrypted.
    package let isSecure: Bool

    /// Why a text is no address.
    package struct Refusal: Error, Hashable { package let message: String }

    /// - Throws: ``Refusal`` with a sentence that says what is wrong.
    package init(_ text: String) throws(Refusal) {
        guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased() else {
            throw Refusal(message: "The address of the server is no URL. Use redis://host:6379.")
        }
        isSecure = scheme == "rediss" || scheme == "valkeys"
        let user = parts.user.flatMap { $0.isEmpty ? nil : $0 }
        let password = parts.password.flatMap { $0.isEmpty ? nil : $0 }
        if user != nil && password == nil {
            throw Refusal(message: "The address has a user without a password. Use redis://user:password@host.")
        }
        (self.user, self.password) = (user, password)
        if scheme == "unix" {
            (host, port, path) = ("", 0, parts.path)
            database = try Self.database(ofSocket: parts)
            return
        }
        guard isSecure || scheme == "redis" || scheme == "valkey" else {
            throw Refusal(message: "The address begins with \"\(scheme)\". Use redis://host:6379.")
        }
        guard let host = parts.host, !host.isEmpty else {
            throw Refusal(message: "The address has no host. Use redis://host:6379.")
        }
        guard (1...65_535).contains(parts.port ?? 6379) else {
            throw Refusal(message: "The address has the port \(parts.port ?? 0). Use one from 1 to 65535.")
        }
        guard parts.query == nil, parts.fragment == nil else {
            throw Refusal(message: "The address ends with options, of which there are none. Leave them out.")
        }
        let path = parts.path.drop { $0 == "/" }
        guard path.isEmpty || Int(path).map({ $0 >= 0 }) == true else {
            throw Refusal(
                message: "The address has the path \"\(path)\". Use the number of a database, as in redis://host/0.")
        }
        // The address of a host of IPv6 stands in brackets.
        self.host = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        (port, database, self.path) = (parts.port ?? 6379, Int(path) ?? 0, nil)
    }

    /// The bytes of a path that a socket of this machine can have.
    private static let pathLimit = 100

    private static func database(ofSocket parts: URLComponents) throws(Refusal) -> Int {
        guard parts.host?.isEmpty != false, parts.path.hasPrefix("/"), (2...pathLimit).contains(parts.path.utf8.count)
        else {
            throw Refusal(
                message: "The address of a socket has no path of at most \(pathLimit) bytes. Use unix:///run/redis."
            )
        }
        let options = parts.queryItems ?? []
        let database = options.first.map { Int($0.value ?? "") ?? -1 } ?? 0
        guard options.count < 2, options.allSatisfy({ $0.name == "db" }), database >= 0, parts.fragment == nil else {
            throw Refusal(
                message: "The address of a socket ends with more than a database. Use unix:///run/redis.sock?db=1.")
        }
        return database
    }

    /// Returns why the address goes together with no encryption, or not with what there is; nil if all is well.
    package func refusal(with security: RedisSecurity?) -> String? {
        if isSecure == (security != nil) { return nil }
        return isSecure
            ? "The address asks for TLS. Add the product LarderRedisTLS, and give the tier security: .tls()."
            : "The address does not ask for TLS, and the tier is given security. Use rediss://host:6379."
    }

    /// The commands after a connection was made.
    package var greeting: [[Data]] {
        var commands: [[String]] = []
        if let password { commands.append(["AUTH"] + (user.map { [$0] } ?? []) + [password]) }
        if database != 0 { commands.append(["SELECT", "\(database)"]) }
        // A server that was stopped accepts connections, and answers nothing.
        commands.append(["PING"])
        return commands.map { $0.map { Data($0.utf8) } }
    }
}
