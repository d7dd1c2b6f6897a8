package import Foundation

/// Where a server is, and as whom it is asked: `redis://user:password@host:port/database`.
package struct RedisAddress: Hashable, Sendable {
    package let host: String
    package let port: Int
    package let user: String?
    package let password: String?
    package let database: Int

    /// Why a text is no address.
    package struct Refusal: Error, Hashable { package let message: String }

    /// - Throws: ``Refusal`` with a sentence that says what is wrong.
    package init(_ text: String) throws(Refusal) {
        guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased() else {
            throw Refusal(message: "The address of the server is no URL. Use redis://host:6379.")
        }
        if scheme == "rediss" {
            throw Refusal(
                message: "The address asks for TLS, which is not spoken here. Put a proxy in front of the server.")
        }
        guard scheme == "redis" || scheme == "valkey" else {
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
        (port, database) = (parts.port ?? 6379, Int(path) ?? 0)
        user = parts.user.flatMap { $0.isEmpty ? nil : $0 }
        password = parts.password.flatMap { $0.isEmpty ? nil : $0 }
        if user != nil && password == nil {
            throw Refusal(message: "The address has a user without a password. Use redis://user:password@host.")
        }
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
