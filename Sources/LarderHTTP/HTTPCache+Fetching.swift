import Foundation
internal import Larder
internal import LarderLocks

/// The way to the origin.
extension HTTPCache {
    /// Returns the answer of the origin, or of another request for the same URL that is on its way.
    func forwarded(
        _ request: HTTPRequest, _ key: String, _ found: FoundResponse?, _ rules: RequestRules, _ send: @escaping Send
    ) async throws -> HTTPResponse {
        let reason = rules.isNoCache ? "request" : found == nil ? "uri-miss" : "stale"
        guard HTTPCall.isPlain(request) && !rules.isNoCache else {
            return try await askOrigin(request, key, found, reason, nil, send)
        }
        while true {
            switch join(key) {
            case .leads(let fetch):
                // Another request may have got it since this one has looked.
                if let latest = await lookUp(key, request), latest.stored.receivedAt != found?.stored.receivedAt,
                    rules.use(of: latest.stored, at: now) == .fresh, let response = await answer(request, latest, "hit")
                {
                    end(fetch, key, .left)
                    count { $0.hits += 1 }
                    return response
                }
                do {
                    return try await askOrigin(request, key, found, reason, fetch, send)
                } catch {
                    end(fetch, key, Self.isCancelled(error) ? .left : .failed(error))
                    throw error
                }
            case .waits(let fetch):
                switch try await fetch.outcome() {
                case .made(let made):
                    if mayServe(made.stored, names: made.names, request),
                        made.key == HTTPKeys.variant(made.names, of: request, under: key),
                        let response = await answer(
                            request, FoundResponse(stored: made.stored, key: made.key), "fwd=\(reason)", "collapsed")
                    {
                        count { $0.collapsed += 1 }
                        return response
                    }
                    return try await askOrigin(request, key, found, reason, nil, send)
                case .unshared: return try await askOrigin(request, key, found, reason, nil, send)
                case .failed(let error):
                    if let stale = await staleAnswer(request, found) { return stale }
                    throw error
                case .left: continue
                }
            }
        }
    }

    /// Returns whether a client has failed because its task was cancelled, whatever it has thrown.
    private static func isCancelled(_ error: any Error) -> Bool { Task.isCancelled || error is CancellationError }

    /// Asks the origin, with a condition if there is something whose validity it can tell.
    ///
    /// - Parameters:
    ///   - fetch: What others wait for; nil if its answer is for this request alone.
    ///   - isQuiet: A Boolean value that indicates whether it counts as nothing in the statistics.
    func askOrigin(
        _ request: HTTPRequest, _ key: String, _ found: FoundResponse?, _ reason: String, _ fetch: HTTPFetch?,
        isQuiet: Bool = false, _ send: Send
    ) async throws -> HTTPResponse {
        let isConditional =
            found?.stored.hasValidator == true && request.method == "GET" && request.field("Range") == nil
        var sent = request
        if isConditional, let stored = found?.stored { sent.fields = HTTPCall.conditional(request, stored) }
        var moment = Moment(
            requested: now, received: 0, invalidations: invalidationCount(key))
        var response: HTTPResponse
        do {
            response = try await send(sent)
        } catch {
            guard !Self.isCancelled(error), let stale = await staleAnswer(request, found) else { throw error }
            end(fetch, key, .failed(error))
            return stale
        }
        if [500, 502, 503, 504].contains(response.status), let stale = await staleAnswer(request, found) {
            end(fetch, key, .unshared)
            return stale
        }
        if response.status == 304, isConditional, let found {
            moment.received = now
            if let (fresh, isSaved) = await freshened(found, by: response, request, moment),
                let answer = await answer(request, fresh, "fwd=\(reason)", "fwd-status=304")
            {
                if !isQuiet { count { $0.revalidated += 1 } }
                let made = MadeResponse(stored: fresh.stored, names: names(of: fresh, request), key: fresh.key)
                end(fetch, key, isSaved ? .made(made) : .left)
                return answer
            }
            // What is good is not what is stored, or its body is no longer there.
            sent.fields = FieldList.removing(HTTPCall.conditions, from: request.fields)
            moment.requested = now
            response = try await send(sent)
        }
        moment.received = now
        if !isQuiet { count { $0.misses += 1 } }
        return await stored(response, request, key, found, moment, reason, fetch)
    }

    /// Stores a response if that is allowed, and returns it with what was done.
    private func stored(
        _ response: HTTPResponse, _ request: HTTPRequest, _ key: String, _ found: FoundResponse?, _ moment: Moment,
        _ reason: String, _ fetch: HTTPFetch?
    ) async -> HTTPResponse {
        var answer = response
        var details = ["fwd-status=\(response.status)"]
        if request.method == "HEAD", let found { await update(found, by: response, request, moment) }
        if let parts = response.parts, let plan = plan(response, request, key, moment) {
            details.append("stored")
            let tee = BodyTee(parts, limit: options.bodyLimit) { [self] body in _ = await store(plan, body) }
            // Its reader may take its time, for which no one waits.
            end(fetch, key, .unshared)
            answer.parts = AsyncThrowingStream { try await tee.next() }
        } else {
            var made: MadeResponse?
            if response.parts == nil, let plan = plan(response, request, key, moment) {
                made = await store(plan, .bytes(response.body))
            }
            if made != nil { details.append("stored") }
            let isOvertaken = invalidationCount(key) != moment.invalidations
            end(fetch, key, made.map { .made($0) } ?? (isOvertaken ? .left : .unshared))
        }
        answer.fields.append(status("fwd=\(reason)", details))
        return answer
    }

    /// Returns a response that is not fresh, if the request and the response allow it where the origin fails.
    private func staleAnswer(_ request: HTTPRequest, _ found: FoundResponse?) async -> HTTPResponse? {
        guard let found,
            RequestRules(request).allowsStaleIfError(found.stored, at: now, options.staleIfError),
            let answer = await answer(request, found, "fwd=stale", "detail=\"stale-if-error\"")
        else { return nil }
        count { $0.stale += 1 }
        return answer
    }

    // MARK: Fetches

    /// What a request does of which others may be on their way.
    enum Joining { case leads(HTTPFetch), waits(HTTPFetch) }

    func join(_ key: String) -> Joining {
        fetches.withLock { fetches in
            if let fetch = fetches[key] { return .waits(fetch) }
            let fetch = HTTPFetch()
            fetches[key] = fetch
            return .leads(fetch)
        }
    }

    func end(_ fetch: HTTPFetch?, _ key: String, _ outcome: HTTPFetch.Outcome) {
        guard let fetch else { return }
        fetches.withLock { if $0[key] === fetch { $0[key] = nil } }
        fetch.end(outcome)
    }
}

/// When a request was sent, and what had been invalidated then.
struct Moment: Sendable {
    var requested: Int64
    var received: Int64
    let invalidations: Int
}

/// A response that was stored.
struct MadeResponse: Sendable {
    let stored: StoredResponse
    /// The names of the fields by which it varies.
    let names: [String]
    let key: String
}

/// A request that is on its way, for which others wait.
final class HTTPFetch: Sendable {
    enum Outcome: Sendable {
        case made(MadeResponse)
        /// Nothing that others may have.
        case unshared
        case failed(any Error)
        /// Its task was cancelled; another one may begin.
        case left
    }

    private struct State {
        var outcome: Outcome?
        var waiters: [Int: CheckedContinuation<Outcome, any Error>] = [:]
        var lastWaiter = 0
    }

    private let state = Mutex(State())

    func end(_ outcome: Outcome) {
        let waiters = state.withLock { state in
            if state.outcome == nil { state.outcome = outcome }
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.resume(returning: outcome) }
    }

    /// Waits for the outcome; throws `CancellationError` if the task is cancelled.
    func outcome() async throws -> Outcome {
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome = state.withLock { state -> Result<Outcome, any Error>? in
                    if let outcome = state.outcome { return .success(outcome) }
                    if Task.isCancelled { return .failure(CancellationError()) }
                    state.waiters[id] = continuation
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(throwing: CancellationError())
        }
    }
}
