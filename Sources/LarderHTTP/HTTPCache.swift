internal import Foundation
public import Larder
internal import LarderLocks
public import LarderShared

/// A cache of HTTP (RFC 9111) over any client: what `URLCache` is, but one can look into it.
///
/// ```swift
/// let http = try await HTTPCache(in: manager)
/// let response = try await http.response(for: HTTPRequest(url)) { request in
///     try await client.send(request)
/// }
/// ```
///
/// It has no network code. The closure is the client: it is called if nothing stored may be served, and with a conditional request
/// if the origin is to say whether what is stored is still good.
///
/// It is a private cache: it may keep what is for one user. ``HTTPOptions/isShared`` makes it a shared one. Responses are in two
/// caches of the manager, as `larder ls` shows them: fields and small bodies in one, and large bodies as files in the other.
///
/// A range is served from a whole response. A response that is a range itself (206) is passed on and not stored.
///
/// Use one object for a cache: that many requests are one, and that nothing is stored which was asked for before a removal, holds for the
/// requests of one object. With a tier, many requests of several nodes are one too.
public final class HTTPCache: Sendable {
    let records: Cache<String, StoredRecord>
    let bodies: Cache<String, Data>
    let options: HTTPOptions
    /// What other nodes have asked for; nil without a tier.
    let shared: SharedCache<String, SharedResponse>?
    let fetches = Mutex<[String: HTTPFetch]>([:])
    private let statusName: String
    private let counts = Mutex(HTTPStatistics())
    /// How often something was invalidated, by the remainder of the hash of its URL: what was asked for before is not stored.
    private let invalidations = Mutex([Int](repeating: 0, count: 256))

    /// The bytes above which a body is a file.
    static var inlineLimit: Int { 16 << 10 }
    private static var urlLimit: Int { 8 << 10 }

    /// Opens the cache, and creates it if it is missing.
    ///
    /// What was stored as a private cache is purged when the cache is opened as a shared one, and the reverse; and so it is with
    /// other targeted fields.
    ///
    /// - Parameters:
    ///   - manager: The manager of the store.
    ///   - name: The name of the cache of fields and small bodies; that of large bodies has "bodies" behind it, and that of what
    ///     other nodes have asked for has "shared".
    ///   - tier: What connects the caches of several nodes; nil for a node alone.
    ///   - options: The options, which have to be the same on all nodes.
    /// - Throws: `.invalidConfiguration` for negative limits. Else an error of `manager.cache(named:)`, or of `shared(through:)`.
    public init(
        in manager: CacheManager, named name: String = "http", through tier: (any SharedTier)? = nil,
        options: HTTPOptions = .init()
    ) async throws {
        for (option, number) in [
            ("bodyLimit", options.bodyLimit), ("fieldLimit", options.fieldLimit),
            ("variantLimit", options.variantLimit), ("sizeLimit", Int(clamping: options.sizeLimit ?? 0)),
        ] where number < 0 {
            throw CacheError(
                .invalidConfiguration, "The option `\(option)` of the HTTP cache is \(number). Use zero or more.")
        }
        self.options = options
        await BodyFile.deleteLeft()
        let kind = ([options.isShared ? "shared" : "private"] + options.targetedFields).joined(separator: " ")
            .lowercased()
        let disk = DiskLimits(sizeLimit: options.sizeLimit.map { $0 / 2 })
        records = try await manager.cache(
            named: name, version: .custom("1 \(kind)"), maxAge: .unlimited,
            options: CacheOptions(memory: options.memory, disk: disk))
        bodies = try await manager.cache(
            named: "\(name) bodies", version: .custom("1 \(kind)"), maxAge: .unlimited,
            options: CacheOptions(memory: options.memory, disk: disk, inlineLimit: 0))
        let isToken = options.name.utf8.allSatisfy { $0 | 32 >= 97 && $0 | 32 <= 122 } && !options.name.isEmpty
        statusName = isToken ? options.name : StructuredFields.string(options.name)
        shared =
            if let tier { try await Self.shared(through: tier, in: manager, "\(name) shared", kind) } else { nil }
    }

    /// Ends the connection with the tier; without one it does nothing.
    ///
    /// Call it before the manager is closed.
    public func close() async { await shared?.close() }

    /// What the cache has done since this object was created.
    public var statistics: HTTPStatistics { counts.withLock { $0 } }

    func count(_ change: (inout HTTPStatistics) -> Void) { counts.withLock { change(&$0) } }

    /// The time by which ages are judged.
    var now: Int64 { records.now }

    /// Returns the response to a request: from the cache if it may be served, or else from the client.
    ///
    /// Many requests for one URL at once are one for the client, if its response may be served. `Cache-Status` says what the cache has done.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - send: The client.
    /// - Throws: The error of the client. A failure of the store is none: then nothing is served or stored.
    public func response(
        for request: HTTPRequest, send: @escaping @Sendable (HTTPRequest) async throws -> HTTPResponse
    ) async throws -> HTTPResponse {
        let (place, rules) = (HTTPPlace(request.url), RequestRules(request))
        let isReadable = (request.method == "GET" || request.method == "HEAD") && !place.host.isEmpty && !place.hasUser
        if isReadable && rules.isNoStore && rules.isOnlyIfCached { return unavailable() }
        if !isReadable || rules.isNoStore || place.key.utf8.count > Self.urlLimit {
            return try await passBy(request, place, isReadable ? "bypass" : "method", send)
        }
        var ask = HTTPAsk(
            request: request, rules: rules, key: HTTPKeys.key(place, in: options.partition?(request)), host: place.host,
            send: send)
        ask.invalidations = invalidationCount(ask.key)
        await lookUp(&ask)
        if let response = await served(ask) { return response }
        if rules.isOnlyIfCached { return unavailable() }
        return try await forwarded(ask)
    }

    /// Removes all responses of a host, and returns the number of those that this node had.
    ///
    /// Other nodes keep what they have; none gets what was asked for before from the tier.
    ///
    /// - Throws: A write error, see `CacheError`.
    @discardableResult
    public func removeAll(host: String) async throws -> Int {
        let tag = "host:\(host.lowercased())"
        let failure = await tierFailure { try await $0.removeAll(tagged: tag) }
        noteInvalidation(nil)
        let count = try await records.removeAll(tagged: tag)
        try await bodies.removeAll(tagged: tag)
        noteInvalidation(nil)
        if let failure { throw failure }
        return count
    }

    /// Removes all responses.
    ///
    /// - Throws: A write error, see `CacheError`.
    public func removeAll() async throws {
        let failure = await tierFailure { try await $0.removeAll() }
        noteInvalidation(nil)
        try await records.removeAll()
        try await bodies.removeAll()
        noteInvalidation(nil)
        if let failure { throw failure }
    }

    /// Removes what is stored of a URL, in all its variants.
    ///
    /// - Parameter request: A request for the URL, in its partition.
    /// - Throws: A write error, see `CacheError`.
    public func remove(_ request: HTTPRequest) async throws {
        try await invalidate(HTTPKeys.key(HTTPPlace(request.url), in: options.partition?(request)))
    }

    func invalidate(_ key: String) async throws {
        let failure = await tierFailure { try await $0.removeValue(forKey: key) }
        noteInvalidation(key)
        try await records.removeAll(tagged: "url:\(key)")
        try await bodies.removeAll(tagged: "url:\(key)")
        noteInvalidation(key)
        if let failure { throw failure }
    }

    /// Removes something from the tier, and returns why that has failed, which is nothing if the tier was closed.
    ///
    /// It is the first step of a removal: a request that begins later must not take from the tier what is removed here.
    private func tierFailure(
        _ remove: (SharedCache<String, SharedResponse>) async throws -> Void
    ) async -> (any Error)? {
        guard let shared else { return nil }
        do {
            try await remove(shared)
            return nil
        } catch {
            return (error as? CacheError)?.code == .closed ? nil : error
        }
    }

    private func stripe(_ key: String) -> Int { Int(truncatingIfNeeded: key.hashValue & 255) }

    /// Notes that a key or everything is removed: what was asked for before is not stored, and not for those who ask from now on.
    ///
    /// It is noted again once it is done, for those who have found in the meantime what was still there.
    private func noteInvalidation(_ key: String?) {
        let places = key.map { [stripe($0)] } ?? Array(0..<256)
        invalidations.withLock { for place in places { $0[place] += 1 } }
        fetches.withLock { if let key { $0[key] = nil } else { $0 = [:] } }
    }

    /// How often something like a key was invalidated.
    func invalidationCount(_ key: String) -> Int { invalidations.withLock { $0[stripe(key)] } }

    // MARK: Serving

    /// Returns the stored response if the request and the response allow it.
    private func served(_ ask: HTTPAsk) async -> HTTPResponse? {
        guard let found = ask.found else { return nil }
        let use = ask.rules.use(of: found.stored, at: now)
        if use == .no { return nil }
        guard let response = await answer(ask.request, found, "hit") else { return nil }
        count { if use == .fresh { $0.hits += 1 } else { $0.stale += 1 } }
        if use == .staleWhileRevalidating { refresh(ask) }
        return response
    }

    /// Asks the origin in the background, unless another request does already.
    private func refresh(_ ask: HTTPAsk) {
        var ask = ask
        ask.isQuiet = true
        ask.request = HTTPRequest(
            ask.request.url, fields: FieldList.removing(HTTPCall.conditions + ["Range"], from: ask.request.fields))
        guard case .leads(let fetch) = join(ask.key) else { return }
        Task { [ask] in
            do {
                let response = try await askOnce(ask, fetch)
                // What is on its way is stored once it is taken.
                if let parts = response.parts { for try await _ in parts {} }
            } catch {
                // What is stored is served on, as long as it may be.
            }
            end(fetch, ask.key, .left)
        }
    }

    /// Sends a request past the cache; an unsafe one removes what it may have changed.
    private func passBy(
        _ request: HTTPRequest, _ place: HTTPPlace, _ reason: String, _ send: Send
    ) async throws -> HTTPResponse {
        count { $0.passedBy += 1 }
        var response = try await send(request)
        let isSafe = ["GET", "HEAD", "OPTIONS", "TRACE"].contains(request.method)
        if !isSafe && (200..<400).contains(response.status) {
            var places = [place]
            for name in ["Location", "Content-Location"] {
                guard let url = response.field(name).flatMap({ URL(string: $0, relativeTo: request.url) }) else {
                    continue
                }
                // Another origin is not theirs to change.
                let other = HTTPPlace(url.absoluteURL)
                if other.origin == place.origin { places.append(other) }
            }
            for place in places {
                do {
                    try await invalidate(HTTPKeys.key(place, in: options.partition?(request)))
                } catch {
                    count { $0.failures += 1 }
                }
            }
        }
        response.fields.append(status("fwd=\(reason)", ["fwd-status=\(response.status)"]))
        return response
    }

    private func unavailable() -> HTTPResponse {
        HTTPResponse(status: 504, fields: [status("detail=\"only-if-cached\"")], body: Data())
    }

    /// The field that says what the cache has done (RFC 9211).
    func status(_ outcome: String, _ details: [String] = []) -> (String, String) {
        ("Cache-Status", details.reduce("\(statusName); \(outcome)") { "\($0); \($1)" })
    }
}

/// What is sent to an origin.
typealias Send = @Sendable (HTTPRequest) async throws -> HTTPResponse

/// A request, and what is known of it.
struct HTTPAsk: Sendable {
    var request: HTTPRequest
    let rules: RequestRules
    /// The key of its URL.
    let key: String
    let host: String
    /// The stored response that fits it.
    var found: FoundResponse?
    /// Why the origin is asked, in the words of RFC 9211.
    var reason = "uri-miss"
    /// A Boolean value that indicates whether it counts as nothing in the statistics.
    var isQuiet = false
    /// How often something like it was removed before it looked for what is stored.
    var invalidations = 0
    let send: Send

    var tags: Set<String> { ["host:\(host)", "url:\(key)"] }
}

/// A response that is stored.
struct FoundResponse: Sendable {
    var stored: StoredResponse
    /// The names of the fields by which it varies.
    let names: [String]
    let key: String
}
