import Foundation
internal import Larder
internal import LarderLocks

/// The way to the origin.
extension HTTPCache {
    /// Returns the answer of the origin, or of another request for the same URL that is on its way.
    func forwarded(_ ask: HTTPAsk) async throws -> HTTPResponse {
        // A client that asks the cache, as for a redirection, would wait for the very request that it is to answer.
        guard HTTPCall.isPlain(ask.request) && !ask.rules.isNoCache && !isInClient else {
            return try await askOrigin(ask, nil)
        }
        while true {
            switch join(ask.key) {
            case .leads(let fetch):
                if let latest = await later(ask) {
                    end(fetch, ask.key, .left)
                    return latest
                }
                do {
                    return try await askOnce(ask, fetch)
                } catch {
                    end(fetch, ask.key, Self.isCancelled(error) ? .left : .failed(error))
                    throw error
                }
            case .waits(let fetch):
                switch try await fetch.outcome() {
                case .made(let made):
                    // A response that needs the origin's word for each use is asked for by each.
                    if fits(made, ask), ask.rules.use(of: made.stored, at: now) != .no,
                        let response = await answer(ask.request, made, "fwd=\(ask.reason)", "collapsed")
                    {
                        count { $0.collapsed += 1 }
                        return response
                    }
                    return try await askOrigin(ask, nil)
                case .unshared: return try await askOrigin(ask, nil)
                case .failed(let error):
                    if let stale = await staleAnswer(ask) { return stale }
                    guard let error else { return try await askOrigin(ask, nil) }
                    throw error
                case .left: continue
                }
            }
        }
    }

    /// Returns what another request may have got since this one has looked.
    private func later(_ ask: HTTPAsk) async -> HTTPResponse? {
        var again = ask
        await lookUp(&again)
        guard let latest = again.found, latest.stored.receivedAt != ask.found?.stored.receivedAt,
            ask.rules.use(of: latest.stored, at: now) == .fresh,
            let response = await answer(ask.request, latest, "hit")
        else { return nil }
        count { $0.hits += 1 }
        return response
    }

    /// Returns whether a response is one for a request.
    func fits(_ response: FoundResponse, _ ask: HTTPAsk) -> Bool {
        mayServe(response.stored, names: response.names, ask.request)
            && response.key == HTTPKeys.variant(response.names, of: ask.request, under: ask.key)
    }

    /// Returns whether a client has failed because its task was cancelled, whatever it has thrown.
    static func isCancelled(_ error: any Error) -> Bool { Task.isCancelled || error is CancellationError }

    /// Asks the origin, with a condition if there is something whose validity it can tell.
    ///
    /// - Parameter fetch: What others wait for; nil if its answer is for this request alone.
    func askOrigin(_ asked: HTTPAsk, _ fetch: HTTPFetch?) async throws -> HTTPResponse {
        let ask = await current(asked)
        let request = ask.request
        let isConditional =
            ask.found?.stored.hasValidator == true && request.method == "GET" && request.field("Range") == nil
        var sent = request
        if isConditional, let stored = ask.found?.stored { sent.fields = HTTPCall.conditional(request, stored) }
        var moment = Moment(requested: now, received: 0, invalidations: ask.invalidations)
        var response: HTTPResponse
        do {
            response = try await send(sent, ask)
        } catch {
            guard !Self.isCancelled(error), let stale = await staleAnswer(ask) else { throw error }
            end(fetch, ask.key, .failed(error))
            return stale
        }
        if [500, 502, 503, 504].contains(response.status), let stale = await staleAnswer(ask) {
            end(fetch, ask.key, .failed(nil))
            return stale
        }
        if response.status == 304, isConditional, let found = ask.found {
            moment.received = now
            if let fresh = freshened(found, by: response, moment),
                let answer = await answer(request, fresh, "fwd=\(ask.reason)", "fwd-status=304")
            {
                if !ask.isQuiet { count { $0.revalidated += 1 } }
                let isSaved = await save(fresh, by: response, ask, moment)
                end(fetch, ask.key, isSaved ? .made(fresh) : unsaved(ask, moment))
                return answer
            }
            // What is good is not what is stored, or its body is no longer there.
            sent.fields = FieldList.removing(HTTPCall.conditions, from: request.fields)
            moment.requested = now
            response = try await send(sent, ask)
        }
        moment.received = now
        if !ask.isQuiet { count { $0.misses += 1 } }
        return await stored(response, ask, moment, fetch)
    }

    /// The caches whose client the task is.
    @TaskLocal private static var clients: Set<ObjectIdentifier> = []

    private var isInClient: Bool { Self.clients.contains(ObjectIdentifier(self)) }

    private func send(_ request: HTTPRequest, _ ask: HTTPAsk) async throws -> HTTPResponse {
        try await Self.$clients.withValue(Self.clients.union([ObjectIdentifier(self)])) { try await ask.send(request) }
    }

    /// Returns a request with what is stored now, if what it has found may have been removed since.
    private func current(_ ask: HTTPAsk) async -> HTTPAsk {
        let invalidations = invalidationCount(ask.key)
        if invalidations == ask.invalidations { return ask }
        var ask = ask
        (ask.invalidations, ask.found, ask.reason) = (invalidations, nil, "uri-miss")
        await lookUp(&ask)
        return ask
    }

    /// Stores a response if that is allowed, and returns it with what was done.
    private func stored(
        _ response: HTTPResponse, _ ask: HTTPAsk, _ moment: Moment, _ fetch: HTTPFetch?
    ) async -> HTTPResponse {
        var answer = response
        var details = ["fwd-status=\(response.status)"]
        if ask.request.method == "HEAD", let found = ask.found { await update(found, by: response, ask, moment) }
        let plan = plan(response, ask, moment)
        if let parts = response.parts {
            // Its reader may take its time, for which no one waits. While a refresh takes it, there is no other one.
            if ask.isQuiet { fetch?.end(.unshared) } else { end(fetch, ask.key, .unshared) }
            if let plan {
                let tee = BodyTee(parts, limit: options.bodyLimit) { [self] in _ = await store(plan, $0) }
                answer.parts = AsyncThrowingStream { try await tee.next() }
            } else if ask.isQuiet {
                answer.parts = nil
            }
        } else {
            let stored = if let plan { await store(plan, .bytes(response.body)) } else { nil as (FoundResponse, Bool)? }
            if stored?.1 == true { details.append("stored") }
            end(fetch, ask.key, stored.map { .made($0.0) } ?? unsaved(ask, moment))
        }
        answer.fields.append(status("fwd=\(ask.reason)", details))
        return answer
    }

    /// What others hear of an answer that was not stored: if it was overtaken or is late, one of them begins again.
    private func unsaved(_ ask: HTTPAsk, _ moment: Moment) -> HTTPFetch.Outcome {
        Task.isCancelled || invalidationCount(ask.key) != moment.invalidations ? .left : .unshared
    }

    /// Returns a response that is not fresh, if the request and the response allow it where the origin fails.
    private func staleAnswer(_ ask: HTTPAsk) async -> HTTPResponse? {
        guard let found = await current(ask).found,
            ask.rules.allowsStaleIfError(found.stored, at: now, options.staleIfError),
            let answer = await answer(ask.request, found, "fwd=stale", "detail=\"stale-if-error\"")
        else { return nil }
        if !ask.isQuiet { count { $0.stale += 1 } }
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

/// A request that is on its way, for which others wait.
final class HTTPFetch: Sendable {
    enum Outcome: Sendable {
        case made(FoundResponse)
        /// Nothing that others may have.
        case unshared
        /// The origin has failed, with an error or with a status.
        case failed((any Error)?)
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
