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
    private static var unsharedAge: MaxAge { .seconds(10) }

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
        let (invalidations, answer) = (invalidationCount(ask.key), OwnAnswer())
        do {
            for isLast in [false, true] {
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
                if answer.result != nil { break }
                if let response = await taken(entry, ask, fetch, invalidations) { return response }
                // What ends in a moment is of no use to anyone. After that all nodes have one request again.
                guard !isLast, let left = left(entry), left < 100 else { break }
                await SharedClock.pause(.milliseconds(left + 1))
            }
        } catch {
            if answer.result == nil {
                if Task.isCancelled { throw error }
                if (error as? CacheError)?.code != .closed { count { $0.failures += 1 } }
            }
        }
        if let result = answer.result { return try result.get() }
        return try await askOrigin(ask, fetch)
    }

    /// The milliseconds until an entry ends, by the clock of this node.
    private func left(_ entry: CacheEntry<String, SharedResponse>) -> Int64? {
        entry.metadata.expiresAt.flatMap { Int64(exactly: ($0.timeIntervalSince1970 * 1000).rounded()) }.map {
            max(0, $0) - now
        }
    }

    /// Returns what other nodes get of an answer.
    private func offer(_ outcome: HTTPFetch.Outcome, _ ask: HTTPAsk) async -> Generated<SharedResponse> {
        guard case .made(let made) = outcome, made.stored.bodySize <= Self.sharedLimit, let body = await body(of: made),
            case let freshness = made.stored.freshness(at: now), freshness > 1
        else { return .value(SharedResponse(), maxAge: Self.unsharedAge) }
        var stored = made.stored
        (stored.body, stored.bodyNumber) = (body, nil)
        return .value(
            SharedResponse(stored: stored, names: made.names, key: made.key),
            maxAge: .duration(.milliseconds(freshness - 1)), tags: ["host:\(ask.host)"])
    }

    /// Stores and returns what another node has got; nil if it is not for this request.
    private func taken(
        _ entry: CacheEntry<String, SharedResponse>, _ ask: HTTPAsk, _ fetch: HTTPFetch, _ invalidations: Int
    ) async -> HTTPResponse? {
        guard var stored = entry.value.stored, let left = left(entry), stored.isSound, stored.bodyNumber == nil else {
            return nil
        }
        // The clock of the other node may be another one. The tier knows how long the response is fresh.
        let now = now
        let whole = stored.policy.lifetime - stored.policy.initialAge
        let difference = now - (whole - min(left, whole)) - stored.receivedAt
        stored.receivedAt += difference
        stored.requestedAt += difference
        let offered = FoundResponse(stored: stored, names: entry.value.names, key: entry.value.key)
        guard fits(offered, ask), ask.rules.use(of: stored, at: now) == .fresh,
            stored.receivedAt > ask.found?.stored.receivedAt ?? .min
        else { return nil }
        let moment = Moment(requested: stored.requestedAt, received: stored.receivedAt, invalidations: invalidations)
        let plan = Plan(response: offered, key: ask.key, tags: ask.tags, moment: moment, length: nil)
        guard let (made, _) = await store(plan, .bytes(stored.body)),
            let response = await answer(ask.request, made, "fwd=\(ask.reason)", "collapsed", "detail=\"shared\"")
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
