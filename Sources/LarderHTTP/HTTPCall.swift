import Foundation

/// What a cache does with the fields of a request.
enum HTTPCall {
    /// The fields that make a request conditional.
    static let conditions = ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"]

    /// Returns whether the answer to a request is one that others may have too.
    static func isPlain(_ request: HTTPRequest) -> Bool {
        request.method == "GET" && (conditions + ["Range"]).allSatisfy { request.field($0) == nil }
    }

    /// Returns the fields that ask whether a stored response is still good.
    static func conditional(_ request: HTTPRequest, _ stored: StoredResponse) -> [(String, String)] {
        var fields = FieldList.removing(conditions, from: request.fields)
        if let tag = stored.field("ETag") { fields.append(("If-None-Match", tag)) }
        if let modified = stored.field("Last-Modified") { fields.append(("If-Modified-Since", modified)) }
        return fields
    }

    /// Returns whether the sender of a request has what is stored, section 4.3.2 of RFC 9111.
    static func isNotModified(_ request: HTTPRequest, _ stored: StoredResponse, now: Int64) -> Bool {
        if stored.status != 200 { return false }
        if let known = request.field("If-None-Match") {
            let tag = stored.field("ETag").map(opaque)
            return known == "*" || tag != nil && FieldList.elements(of: known).contains { opaque($0) == tag }
        }
        guard let since = request.field("If-Modified-Since").flatMap({ HTTPDate.milliseconds($0, now: now) }) else {
            return false
        }
        let modified = stored.field("Last-Modified") ?? stored.field("Date")
        return modified.flatMap { HTTPDate.milliseconds($0, now: now) }.map { $0 <= since } ?? false
    }

    /// A tag without its mark of weakness, which a comparison of what is stored does not mind.
    static func opaque(_ tag: String) -> String { tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag }
}

/// The part of a body that a request asks for.
enum HTTPRange: Equatable {
    case whole
    case part(Range<Int>)
    case unsatisfiable

    /// Finds out what a request for a stored response asks for; several parts are answered by the whole.
    init(of request: HTTPRequest, _ stored: StoredResponse) {
        self = .whole
        // A client may have decoded the body, of which the origin would count other bytes.
        guard request.method == "GET", stored.status == 200, stored.field("Content-Encoding") == nil,
            let field = request.field("Range"),
            Self.holds(request.field("If-Range"), stored)
        else { return }
        let parts = field.split(separator: "=", maxSplits: 1).map(FieldList.trimmed)
        guard parts.count == 2, parts[0].lowercased() == "bytes", !parts[1].contains(",") else { return }
        let ends = parts[1].split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false).map(FieldList.trimmed)
        guard ends.count == 2 else { return }
        let size = stored.bodySize
        if ends[0].isEmpty {
            guard let count = Self.number(ends[1]) else { return }
            self = count == 0 || size == 0 ? .unsatisfiable : .part(max(0, size - count)..<size)
            return
        }
        guard let first = Self.number(ends[0]), ends[1].isEmpty || Self.number(ends[1]) != nil else { return }
        let last = Self.number(ends[1]) ?? .max
        if last < first { return }
        self = first >= size ? .unsatisfiable : .part(first..<min(size - 1, last) + 1)
    }

    private static func number(_ text: String) -> Int? {
        text.isEmpty || !text.utf8.allSatisfy { $0 >= 48 && $0 <= 57 } ? nil : Int(text) ?? .max
    }

    /// Returns whether a condition holds under which a part is wanted: a strong tag, or exactly the date of the change.
    private static func holds(_ condition: String?, _ stored: StoredResponse) -> Bool {
        guard let condition else { return true }
        if condition.hasPrefix("\"") { return condition == stored.field("ETag") }
        return !condition.hasPrefix("W/") && condition == stored.field("Last-Modified")
    }
}
