import Foundation

/// A response as it is stored, with what decides whether it may be served.
struct StoredResponse: Codable, Sendable {
    var status: Int
    private var names: [String]
    private var values: [String]
    /// When the request was sent and when the response came, in milliseconds since 1970.
    var requestedAt: Int64
    var receivedAt: Int64
    var policy: Policy
    /// The body; empty if it is a file.
    var body: Data
    /// The number of the file of the body; nil if there is none.
    var bodyNumber: UInt64?
    var bodySize: Int

    /// What the response says of its use, in the words of RFC 9111.
    struct Policy: Codable, Sendable {
        /// The milliseconds for which it is fresh, counted from its age 0.
        var lifetime: Int64
        /// The age that it had when it was received.
        var initialAge: Int64
        var isAlwaysRevalidated = false
        /// A Boolean value that indicates whether it may never be served stale.
        var mustRevalidate = false
        var isImmutable = false
        /// A Boolean value that indicates whether it is for everyone, whatever the request had to prove.
        var isPublic = false
        var staleWhileRevalidate: Int64 = 0
        /// Nil if the response says nothing of it.
        var staleIfError: Int64?
    }

    /// Creates a response whose body is still to come.
    init(status: Int, fields: [(String, String)], requestedAt: Int64, receivedAt: Int64, policy: Policy) {
        (self.status, names, values) = (status, fields.map(\.0), fields.map(\.1))
        (self.requestedAt, self.receivedAt, self.policy) = (requestedAt, receivedAt, policy)
        (body, bodyNumber, bodySize) = (Data(), nil, 0)
    }

    /// A Boolean value that indicates whether its numbers are such as this cache stores: another program may have written it.
    var isSound: Bool {
        let moments = 0...Int64(1) << 53
        return moments.contains(policy.lifetime) && moments.contains(policy.initialAge) && moments.contains(requestedAt)
            && moments.contains(receivedAt) && bodySize >= 0 && (bodyNumber != nil || body.count == bodySize)
    }

    var fields: [(String, String)] {
        get { zip(names, values).map { ($0, $1) } }
        set { (names, values) = (newValue.map(\.0), newValue.map(\.1)) }
    }

    func field(_ name: String) -> String? { FieldList.value(of: name, in: zip(names, values)) }

    /// The milliseconds since the origin has made it or said that it is good.
    func age(at now: Int64) -> Int64 { policy.initialAge + max(0, now - receivedAt) }

    /// A Boolean value that indicates whether it comes from the future, since the clock was set back: its age is not known.
    func isAhead(of now: Int64) -> Bool { receivedAt > now.addingReportingOverflow(60_000).partialValue }

    /// The milliseconds for which it is still fresh; negative for those since it was.
    func freshness(at now: Int64) -> Int64 { policy.lifetime - age(at: now) }

    var hasValidator: Bool { field("ETag") != nil || field("Last-Modified") != nil }
}

/// What is stored under the key of a URL: its response, or the names of the fields by which it varies.
struct StoredRecord: Codable, Sendable {
    var response: StoredResponse?
    /// The sets of names in lower case, sorted; the latest first.
    var varies: [[String]] = []
}

/// What a response says of its storage and of its use.
struct ResponseRules {
    let control: CacheControl
    private let isTargeted: Bool
    private let response: HTTPResponse
    private let options: HTTPOptions

    init(_ response: HTTPResponse, _ options: HTTPOptions) {
        (self.response, self.options) = (response, options)
        var targeted: CacheControl?
        for name in options.targetedFields {
            targeted = CacheControl(targeted: response.field(name))
            if targeted != nil { break }
        }
        (control, isTargeted) = (targeted ?? CacheControl(response.field("Cache-Control")), targeted != nil)
    }

    /// The statuses of which this cache knows what they mean, beyond that of their class.
    private static let understood: Set<Int> = [
        200, 203, 204, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 410, 414, 451, 500, 501, 502, 503, 504,
    ]
    /// The statuses that may be fresh without a lifetime.
    private static let heuristic: Set<Int> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    /// Returns whether a response to a request may be stored, section 3 of RFC 9111.
    func isStorable(_ request: HTTPRequest) -> Bool {
        let status = response.status
        // A part of a body is passed on. So is an interim answer, and one to a condition.
        if status < 200 || [206, 304, 412].contains(status) { return false }
        if control.has("must-understand") {
            if !Self.understood.contains(status) { return false }
        } else if control.has("no-store") {
            return false
        }
        if let vary, vary.contains("*") || vary.count > 16 { return false }
        if response.fields.count > 256 || FieldList.size(of: response.fields) > options.fieldLimit { return false }
        if options.isShared {
            if control.isWhole("private") { return false }
            let allows = ["must-revalidate", "public", "s-maxage"].contains { control.has($0) }
            if request.field("Authorization") != nil && !allows { return false }
        }
        return control.has("public") || control.has("max-age") || !options.isShared && control.has("private")
            || options.isShared && control.has("s-maxage") || !isTargeted && response.field("Expires") != nil
            || Self.heuristic.contains(status) && (response.field("Last-Modified") ?? response.field("ETag")) != nil
    }

    /// The names of the fields by which responses of the URL vary, in lower case and sorted; nil if there is no such field.
    var vary: [String]? {
        response.field("Vary").map { Set(FieldList.elements(of: $0).map { $0.lowercased() }).sorted() }
    }

    /// The fields that are stored.
    var storedFields: [(String, String)] {
        let named = options.isShared ? control.fields("private") : []
        return FieldList.stored(response.fields, without: control.fields("no-cache") + named)
    }

    /// Returns what decides the use of the response, sections 4.2 and 5.2.2.
    func policy(requestedAt: Int64, receivedAt: Int64) -> StoredResponse.Policy {
        let date = response.field("Date").flatMap { HTTPDate.milliseconds($0, now: receivedAt) }
        // The first member counts, and what is no number is ignored.
        let age = FieldList.elements(of: response.field("Age")).first.flatMap(CacheControl.milliseconds) ?? 0
        let apparent = max(0, receivedAt - (date ?? receivedAt))
        let initialAge = max(apparent, age + max(0, receivedAt - requestedAt))
        var policy = StoredResponse.Policy(
            lifetime: lifetime(date ?? receivedAt, receivedAt), initialAge: initialAge)
        policy.isAlwaysRevalidated = control.isWhole("no-cache")
        policy.mustRevalidate =
            control.has("must-revalidate") || policy.isAlwaysRevalidated
            || options.isShared && (control.has("proxy-revalidate") || control.has("s-maxage"))
        policy.isImmutable = control.has("immutable")
        policy.isPublic = options.isShared || control.has("public")
        policy.staleWhileRevalidate = control.validMilliseconds("stale-while-revalidate") ?? 0
        policy.staleIfError = control.validMilliseconds("stale-if-error")
        return policy
    }

    private func lifetime(_ date: Int64, _ now: Int64) -> Int64 {
        if options.isShared, let age = control.milliseconds("s-maxage") { return age }
        if let age = control.milliseconds("max-age") { return age }
        if !isTargeted, let expires = response.field("Expires") {
            // What is no moment is one in the past.
            return max(0, (HTTPDate.milliseconds(expires, now: now) ?? date) - date)
        }
        guard Self.heuristic.contains(response.status) || control.has("public"),
            let modified = response.field("Last-Modified").flatMap({ HTTPDate.milliseconds($0, now: now) }),
            modified < date
        else { return 0 }
        let share = Double(date - modified) * max(0, min(1, options.heuristicShare))
        return min(Int64(share), options.heuristicLimit.milliseconds)
    }
}

/// What a request asks of a cache, section 5.2.1.
struct RequestRules {
    let isNoStore: Bool
    let isNoCache: Bool
    let isOnlyIfCached: Bool
    private let maxAge: Int64?
    private let minFresh: Int64
    /// Nil if nothing stale is accepted.
    private let maxStale: Int64?
    private let staleIfError: Int64?

    init(_ request: HTTPRequest) {
        let field = request.field("Cache-Control")
        let control = CacheControl(field)
        isNoStore = control.has("no-store")
        let pragma = FieldList.elements(of: request.field("Pragma")).map { $0.lowercased() }
        isNoCache = control.has("no-cache") || field == nil && pragma.contains("no-cache")
        isOnlyIfCached = control.has("only-if-cached")
        maxAge = control.validMilliseconds("max-age")
        staleIfError = control.validMilliseconds("stale-if-error")
        minFresh = control.validMilliseconds("min-fresh") ?? 0
        maxStale = control.has("max-stale") ? control.validMilliseconds("max-stale") ?? .max : nil
    }

    /// How a stored response may be served.
    enum Use { case fresh, stale, staleWhileRevalidating, no }

    func use(of stored: StoredResponse, at now: Int64) -> Use {
        if isNoCache || stored.policy.isAlwaysRevalidated || stored.isAhead(of: now) { return .no }
        let freshness = stored.freshness(at: now)
        // A reload asks for no more than what cannot change (RFC 8246).
        if freshness > 0, maxAge == 0, stored.policy.isImmutable { return .fresh }
        if let maxAge, stored.age(at: now) > maxAge || maxAge == 0 { return .no }
        if freshness > 0 { return freshness >= minFresh ? .fresh : .no }
        if stored.policy.mustRevalidate || minFresh > 0 { return .no }
        if let maxStale, -freshness <= maxStale { return .stale }
        return -freshness < stored.policy.staleWhileRevalidate ? .staleWhileRevalidating : .no
    }

    /// Returns whether a stored response may be served because the origin fails (RFC 5861).
    func allowsStaleIfError(_ stored: StoredResponse, at now: Int64, _ usual: Duration?) -> Bool {
        if isNoCache || stored.policy.mustRevalidate { return false }
        guard let window = staleIfError ?? stored.policy.staleIfError ?? usual?.milliseconds else { return false }
        return -stored.freshness(at: now) <= window
    }
}

extension Duration {
    /// The milliseconds, between 0 and some hundred years.
    fileprivate var milliseconds: Int64 {
        Int64(Swift.max(.zero, Swift.min(self, .seconds(1 << 33))) / .milliseconds(1))
    }
}
