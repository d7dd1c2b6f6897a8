import Foundation
internal import Larder
internal import LarderLocks
internal import LarderShared

/// A response that one node gives to the others, with its body; without a response, others have to ask for themselves.
struct SharedResponse: Codable, Sendable {
    var stored: StoredResponse?
    var names: [String] = []
    var key = ""
}

/// One request of many nodes.
extension HTTPCache {
    /// The bytes of a body up to which other nodes get it.
    private static var sharedLimit: Int { 1 << 20 }
    /// For so long all nodes ask for what they cannot share, instead of one after the other.
    private static var unsharedAge: MaxAge { .seconds(1) }

    static func shared(
        through tier: any SharedTier, in manager: CacheManager, _ name: String, _ kind: String
    ) async throws -> SharedCache<String, SharedResponse> {
        let cache: Cache<String, SharedResponse> = try await manager.cache(
            named: name, version: .custom("1 \(kind)"), maxAge: .unlimited,
            options: CacheOptions(memory: .disabled, disk: DiskLimits(sizeLimit: 16 << 20)))
        return try await cache.shared(through: tier, options: SharedOptions(entryLimit: 2 * sharedLimit))
    }

    /// Returns the answer of the origin, or what another node has got from it.
    func askOnce(_ ask: HTTPAsk, _ fetch: HTTPFetch) async throws -> HTTPResponse {
        guard let shared else { return try await askOrigin(ask, fetch) }
        let invalidations = invalidationCount(ask.key)
        let answer = OwnAnswer()
        do {
            let entry = try await shared.entry(forKey: ask.key) { [self] _, _ in
                do {
                    let response = try await askOrigin(ask, fetch)
                    answer.set(.success(response))
                    return await offer(response.parts == nil ? try await fetch.outcome() : .unshared, ask)
                } catch {
                    if answer.result == nil { answer.set(.failure(error)) }
                    throw error
                }
            }
            if answer.result == nil, let response = await taken(entry, ask, fetch, invalidations) { return response }
        } catch {
            if answer.result == nil {
                if Self.isCancelled(error) { throw error }
                count { $0.failures += 1 }
            }
        }
        if let result = answer.result { return try result.get() }
        return try await askOrigin(ask, fetch)
    }

    /// Returns what other nodes get of an answer.
    private func offer(_ outcome: HTTPFetch.Outcome, _ ask: HTTPAsk) async -> Generated<SharedResponse> {
        guard case .made(let made) = outcome, made.stored.bodySize <= Self.sharedLimit,
            case let freshness = made.stored.freshness(at: now), freshness > 0, let body = await body(of: made)
        else { return .value(SharedResponse(), maxAge: Self.unsharedAge) }
        var stored = made.stored
        (stored.body, stored.bodyNumber) = (body, nil)
        return .value(
            SharedResponse(stored: stored, names: made.names, key: made.key),
            maxAge: .duration(.milliseconds(freshness)), tags: ask.tags)
    }

    /// Stores and returns what another node has got; nil if it is not for this request.
    private func taken(
        _ entry: CacheEntry<String, SharedResponse>, _ ask: HTTPAsk, _ fetch: HTTPFetch, _ invalidations: Int
    ) async -> HTTPResponse? {
        guard var stored = entry.value.stored else { return nil }
        let now = now
        // The clock of the other node may be another one. The tier knows how long the response is fresh.
        if let end = entry.metadata.expiresAt {
            let left = Int64(end.timeIntervalSince1970 * 1000) - now
            stored.receivedAt -= max(0, stored.freshness(at: now) - left)
        }
        var made = FoundResponse(stored: stored, names: entry.value.names, key: entry.value.key)
        guard fits(made, ask), !stored.isAhead(of: now), ask.rules.use(of: stored, at: now) == .fresh,
            stored.receivedAt > ask.found?.stored.receivedAt ?? .min
        else { return nil }
        let moment = Moment(
            requested: stored.requestedAt, received: stored.receivedAt, invalidations: invalidations)
        let plan = Plan(response: made, key: ask.key, tags: ask.tags, moment: moment, length: nil)
        made = await store(plan, .bytes(stored.body)) ?? made
        guard let response = await answer(ask.request, made, "fwd=\(ask.reason)", "collapsed", "detail=\"shared\"")
        else { return nil }
        if !ask.isQuiet { count { $0.collapsed += 1 } }
        end(fetch, ask.key, .made(made))
        return response
    }
}

/// What this node has got from the origin, whatever then came of it in the tier.
private final class OwnAnswer: Sendable {
    private let state = Mutex<Result<HTTPResponse, any Error>?>(nil)

    var result: Result<HTTPResponse, any Error>? { state.withLock { $0 } }

    func set(_ result: Result<HTTPResponse, any Error>) { state.withLock { $0 = result } }
}
