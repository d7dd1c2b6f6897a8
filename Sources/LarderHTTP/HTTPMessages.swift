public import Foundation

/// A request of HTTP, as far as a cache looks at it.
public struct HTTPRequest: Sendable {
    /// The target; a fragment is ignored.
    public var url: URL

    /// The method; it is compared as it is, so `get` is not `GET`.
    public var method: String

    /// The fields with their names, in their order; names are compared without case.
    public var fields: [(String, String)]

    /// The body, which the cache passes on and never looks at.
    public var body: Data?

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - url: The target.
    ///   - method: The method.
    ///   - fields: The fields with their names.
    ///   - body: The body.
    public init(_ url: URL, method: String = "GET", fields: [(String, String)] = [], body: Data? = nil) {
        (self.url, self.method, self.fields, self.body) = (url, method, fields, body)
    }

    /// Returns the value of a field; several lines of one name are one list, and nil means that there is none.
    public func field(_ name: String) -> String? { FieldList.value(of: name, in: fields) }
}

/// A response of HTTP, from an origin or from the cache.
public struct HTTPResponse: Sendable {
    /// The status.
    public var status: Int

    /// The fields with their names, in their order; names are compared without case.
    public var fields: [(String, String)]

    /// The body.
    ///
    /// A large one from the cache is a file that is mapped into memory: what is not read takes no memory. Empty if the body
    /// comes as ``parts``.
    public var body: Data

    /// The body in parts, while it is delivered; nil if it is ``body``.
    ///
    /// The cache keeps what it hands on, once the last part was taken. If the parts end with an error or are not all taken,
    /// nothing is kept.
    public var parts: AsyncThrowingStream<Data, any Error>?

    /// The target that has answered, if the client has followed redirects.
    ///
    /// A response of another target than that of the request is not stored: a redirect could plant it.
    public var url: URL?

    /// Creates a response.
    ///
    /// - Parameters:
    ///   - status: The status.
    ///   - fields: The fields with their names.
    ///   - body: The body.
    ///   - url: The target that has answered, if it may be another one than that of the request.
    public init(status: Int, fields: [(String, String)], body: Data, url: URL? = nil) {
        (self.status, self.fields, self.body, self.url) = (status, fields, body, url)
    }

    /// Creates a response whose body is still on its way.
    ///
    /// - Parameters:
    ///   - status: The status.
    ///   - fields: The fields with their names.
    ///   - parts: The body in parts.
    ///   - url: The target that has answered, if it may be another one than that of the request.
    public init(
        status: Int, fields: [(String, String)], parts: AsyncThrowingStream<Data, any Error>, url: URL? = nil
    ) {
        self.init(status: status, fields: fields, body: Data(), url: url)
        self.parts = parts
    }

    /// Returns the value of a field; several lines of one name are one list, and nil means that there is none.
    public func field(_ name: String) -> String? { FieldList.value(of: name, in: fields) }

    /// Returns the whole body, which may be on its way.
    ///
    /// - Throws: The error with which the parts have ended.
    public func wholeBody() async throws -> Data {
        guard let parts else { return body }
        var whole = Data()
        for try await part in parts { whole.append(part) }
        // The parts of a task that was cancelled seem to end.
        try Task.checkCancellation()
        return whole
    }
}

/// What is done with lists of fields.
enum FieldList {
    static func isSame(_ a: String, _ b: String) -> Bool {
        a.utf8.count == b.utf8.count && a.utf8.elementsEqual(b.utf8) { lowercase($0) == lowercase($1) }
    }

    private static func lowercase(_ byte: UInt8) -> UInt8 { byte >= 65 && byte <= 90 ? byte + 32 : byte }

    static func value(of name: String, in fields: some Sequence<(String, String)>) -> String? {
        var found: String?
        for (other, value) in fields where isSame(other, name) {
            found = found.map { $0 + ", " + trimmed(value) } ?? trimmed(value)
        }
        return found
    }

    static func trimmed(_ text: some StringProtocol) -> String {
        func isSpace(_ byte: UInt8?) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        var view = Substring(text).utf8
        while isSpace(view.first) { view.removeFirst() }
        while isSpace(view.last) { view.removeLast() }
        return String(Substring(view))
    }

    /// Returns the elements of a list, divided by commas outside of quotes, without those that are empty.
    static func elements(of value: String?) -> [String] {
        guard let value else { return [] }
        var (elements, element): ([String], String) = ([], "")
        var (isQuoted, isEscaped) = (false, false)
        for character in value {
            if isEscaped {
                isEscaped = false
            } else if isQuoted && character == "\\" {
                isEscaped = true
            } else if character == "\"" {
                isQuoted.toggle()
            } else if character == "," && !isQuoted {
                elements.append(trimmed(element))
                element = ""
                continue
            }
            element.append(character)
        }
        return (elements + [trimmed(element)]).filter { !$0.isEmpty }
    }

    /// Returns fields without some.
    static func removing(_ names: [String], from fields: [(String, String)]) -> [(String, String)] {
        fields.filter { field in !names.contains { isSame($0, field.0) } }
    }

    /// The bytes that fields take.
    static func size(of fields: [(String, String)]) -> Int {
        fields.reduce(0) { $0 + $1.0.utf8.count + $1.1.utf8.count + 4 }
    }

    /// Returns fields in which a field has one value.
    static func setting(_ name: String, to value: String, in fields: [(String, String)]) -> [(String, String)] {
        removing([name], from: fields) + [(name, value)]
    }

    /// The fields of one connection, which are never stored.
    private static let ofConnection = [
        "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
        "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
    ]

    /// Returns the fields that may be stored.
    static func stored(_ fields: [(String, String)], without others: [String] = []) -> [(String, String)] {
        let named = elements(of: value(of: "Connection", in: fields))
        return removing(ofConnection + named + others, from: fields)
    }
}
