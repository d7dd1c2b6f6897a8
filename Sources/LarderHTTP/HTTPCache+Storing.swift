import Foundation
internal import Larder
internal import LarderLocks

/// What is stored, and what is made of it.
extension HTTPCache {
    // MARK: Finding

    /// Finds the stored response that fits a request; a failure of the store is none.
    func lookUp(_ ask: inout HTTPAsk) async {
        guard let record = await record(ask.key) else { return }
        let (now, request) = (now, ask.request)
        var found: FoundResponse?
        // Of several the latest.
        func offer(_ response: StoredResponse?, _ names: [String], _ key: String) {
            guard let response, !response.isAhead(of: now), mayServe(response, names: names, request),
                response.receivedAt >= found?.stored.receivedAt ?? .min
            else { return }
            found = FoundResponse(stored: response, names: names, key: key)
        }
        offer(record.response, [], ask.key)
        for names in record.varies {
            let variant = HTTPKeys.variant(names, of: request, under: ask.key)
            offer(await self.record(variant)?.response, names, variant)
        }
        ask.found = found
        let isRefused = found.map { ask.rules.isNoCache || $0.stored.freshness(at: now) > 0 }
        ask.reason = isRefused.map { $0 ? "request" : "stale" } ?? "vary-miss"
    }

    /// Returns whether a response that is stored under names of fields may be for the user of a request.
    func mayServe(_ stored: StoredResponse, names: [String], _ request: HTTPRequest) -> Bool {
        stored.policy.isPublic || names.contains("authorization") || request.field("Authorization") == nil
    }

    private func record(_ key: String) async -> StoredRecord? {
        do throws(CacheError) {
            let record = try await records.value(forKey: key)
            return record?.response?.isSound == false ? nil : record
        } catch {
            count { $0.failures += 1 }
            return nil
        }
    }

    /// The names of the fields by which a response varies, that of its user included if it may be for one alone.
    private func names(_ vary: [String]?, _ request: HTTPRequest, isPublic: Bool) -> [String] {
        let names = vary ?? []
        if options.isShared || isPublic || request.field("Authorization") == nil { return names }
        return Set(names + ["authorization"]).sorted()
    }

    // MARK: Answering

    /// Returns a stored response as the answer to a request; nil if its body is no longer there.
    func answer(
        _ request: HTTPRequest, _ found: FoundResponse, _ outcome: String, _ details: String...
    ) async -> HTTPResponse? {
        let (stored, now) = (found.stored, now)
        var fields = FieldList.setting("Age", to: "\(stored.age(at: now) / 1000)", in: stored.fields)
        let freshness = ["ttl=\(stored.freshness(at: now) / 1000)"]
        fields.append(status(outcome, freshness + details))
        if HTTPCall.isNotModified(request, stored, now: now) {
            let kept = FieldList.removing(
                ["Content-Length", "Content-Type", "Content-Encoding", "Content-Range"], from: fields)
            return HTTPResponse(status: 304, fields: kept, body: Data())
        }
        if request.method == "HEAD" { return HTTPResponse(status: stored.status, fields: fields, body: Data()) }
        guard let body = await body(of: found) else { return nil }
        switch HTTPRange(of: request, stored) {
        case .whole: return HTTPResponse(status: stored.status, fields: fields, body: body)
        case .unsatisfiable:
            fields = FieldList.setting("Content-Range", to: "bytes */\(stored.bodySize)", in: fields)
            return HTTPResponse(
                status: 416, fields: FieldList.setting("Content-Length", to: "0", in: fields), body: Data())
        case .part(let range):
            let place = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(stored.bodySize)"
            fields = FieldList.setting("Content-Range", to: place, in: fields)
            fields = FieldList.setting("Content-Length", to: "\(range.count)", in: fields)
            let start = body.startIndex
            return HTTPResponse(
                status: 206, fields: fields, body: body[start + range.lowerBound..<start + range.upperBound])
        }
    }

    /// Returns the body of a response; nil if it is no longer there.
    func body(of found: FoundResponse) async -> Data? {
        guard let number = found.stored.bodyNumber else { return found.stored.body }
        let key = Self.bodyKey(found.key, number)
        do {
            var body: Data?
            if found.stored.bodySize <= Self.readLimit {
                body = try await bodies.value(forKey: key)
            } else if let url = try await bodies.fileURL(forKey: key) {
                body = try await offload { try Data(contentsOf: url, options: .mappedIfSafe) }
            }
            return body?.count == found.stored.bodySize ? body : nil
        } catch {
            count { $0.failures += 1 }
            return nil
        }
    }

    /// The bytes up to which a body is read as a whole, and compared with its checksum.
    private static var readLimit: Int { 4 << 20 }

    /// Each body has a key of its own: what is found under it belongs to the fields, whatever was stored later.
    private static func bodyKey(_ key: String, _ number: UInt64) -> String { "\(key) \(String(number, radix: 36))" }

    // MARK: Storing

    /// A response that may be stored, once its body is there.
    struct Plan: Sendable {
        var response: FoundResponse
        /// The key of the URL.
        let key: String
        let tags: Set<String>
        let moment: Moment
        /// The number of bytes that the body has to have; nil if it is not known.
        let length: Int?
    }

    /// The body of a response that is stored.
    enum Body: Sendable {
        case bytes(Data)
        case file(URL, size: Int)
    }

    /// Returns how a response is stored; nil if that is not allowed, or of no use.
    func plan(_ response: HTTPResponse, _ ask: HTTPAsk, _ moment: Moment) -> Plan? {
        let request = ask.request
        guard request.method == "GET", request.field("Range") == nil else { return nil }
        if let url = response.url, HTTPPlace(url).key != HTTPPlace(request.url).key { return nil }
        let rules = ResponseRules(response, options)
        guard rules.isStorable(request) else { return nil }
        let policy = rules.policy(requestedAt: moment.requested, receivedAt: moment.received)
        var fields = rules.storedFields
        if response.field("Date") == nil { fields.append(("Date", HTTPDate.text(moment.received))) }
        let isOfUse =
            policy.lifetime > 0 || policy.staleWhileRevalidate > 0 || policy.staleIfError ?? 0 > 0
        if !isOfUse && (response.field("ETag") ?? response.field("Last-Modified")) == nil { return nil }
        // What a client has decoded has another length.
        let isPlain = response.field("Content-Encoding") == nil
        let length = isPlain ? response.field("Content-Length") : nil
        if let length, Int(length) == nil { return nil }
        let names = names(rules.vary, request, isPublic: policy.isPublic)
        let stored = StoredResponse(
            status: response.status, fields: fields, requestedAt: moment.requested, receivedAt: moment.received,
            policy: policy)
        let key = HTTPKeys.variant(names, of: request, under: ask.key)
        return Plan(
            response: FoundResponse(stored: stored, names: names, key: key), key: ask.key, tags: ask.tags,
            moment: moment,
            length: length.flatMap { Int($0) })
    }

    /// Stores a response; nil if its body is too large or not whole, if it was invalidated in the meantime, or if there is a later one.
    ///
    /// If the store fails, others who wait can have the response all the same.
    func store(_ plan: Plan, _ body: Body) async -> (made: FoundResponse, isStored: Bool)? {
        var made = plan.response
        let size =
            switch body {
            case .bytes(let bytes): bytes.count
            case .file(_, let size): size
            }
        if size > options.bodyLimit || plan.length.map({ $0 != size }) == true { return nil }
        (made.stored.body, made.stored.bodySize) = (Data(), size)
        do {
            if case .bytes(let bytes) = body, size <= Self.inlineLimit {
                made.stored.body = Data(bytes)
            } else {
                made.stored.bodyNumber = .random(in: .min ... .max)
                try await write(body, size, of: made, plan.tags)
            }
            if try await save(made, plan.key, plan.tags, plan.moment) {
                count { $0.stored += 1 }
                return (made, true)
            }
            await removeBody(of: made.key, made.stored)
            return nil
        } catch {
            if !Task.isCancelled { count { $0.failures += 1 } }
            await removeBody(of: made.key, made.stored)
            guard case .bytes(let bytes) = body else { return nil }
            (made.stored.body, made.stored.bodyNumber) = (bytes, nil)
            return (made, false)
        }
    }

    private func write(_ body: Body, _ size: Int, of made: FoundResponse, _ tags: Set<String>) async throws {
        guard let number = made.stored.bodyNumber else { return }
        let key = Self.bodyKey(made.key, number)
        switch body {
        case .bytes(let bytes) where size <= Self.readLimit: try await bodies.setValue(bytes, forKey: key, tags: tags)
        // What is mapped is no use in memory.
        case .bytes(let bytes):
            let file = try await BodyFile(bytes)
            try await bodies.setValue(contentsOf: file.url, forKey: key, tags: tags)
        case .file(let url, _): try await bodies.setValue(contentsOf: url, forKey: key, tags: tags)
        }
    }

    /// Deletes a body that no record names, also if the task is cancelled; one that stays leaves by the limit of its cache.
    private func removeBody(of key: String, _ stored: StoredResponse?) async {
        guard let number = stored?.bodyNumber else { return }
        await Task {
            do { try await bodies.remove(Self.bodyKey(key, number)) } catch { count { $0.failures += 1 } }
        }.value
    }

    /// Writes a response, and names its variant under the key of the URL; returns false if it was invalidated in the meantime.
    private func save(
        _ made: FoundResponse, _ key: String, _ tags: Set<String>, _ moment: Moment
    ) async throws -> Bool {
        let stored = made.stored
        let (isSaved, replaced) = try await records.manager.transaction {
            [self] transaction -> (Bool, StoredResponse?) in
            // A removal that comes later than this look finds what is written here.
            if invalidationCount(key) != moment.invalidations { return (false, nil) }
            var record = try transaction.record(key, in: records) ?? StoredRecord()
            let old = made.names.isEmpty ? record.response : try transaction.record(made.key, in: records)?.response
            // A body may have come slowly.
            if let old, old.isSound, old.requestedAt > stored.requestedAt, !old.isAhead(of: stored.receivedAt) {
                return (false, nil)
            }
            let replaced = old?.bodyNumber == stored.bodyNumber ? nil : old
            if made.names.isEmpty {
                record.response = stored
            } else {
                try transaction.setValue(StoredRecord(response: stored), forKey: made.key, in: records, tags: tags)
                let varies = [made.names] + record.varies.filter { $0 != made.names }
                if record.varies.first == made.names { return (true, replaced) }
                record.varies = Array(varies.prefix(options.variantLimit))
            }
            try transaction.setValue(record, forKey: key, in: records, tags: tags)
            return (true, replaced)
        }
        await removeBody(of: made.key, replaced)
        return isSaved
    }

    // MARK: Updating

    /// Takes over what a 304 says of a stored response, section 3.2; nil if it is about another one.
    func freshened(_ found: FoundResponse, by response: HTTPResponse, _ moment: Moment) -> FoundResponse? {
        if let tag = response.field("ETag") {
            let old = found.stored.field("ETag")
            if old.map({ HTTPCall.opaque($0) != HTTPCall.opaque(tag) }) ?? !tag.hasPrefix("W/") { return nil }
        }
        var fresh = found
        fresh.stored = updated(found.stored, by: response, moment)
        return fresh
    }

    /// Takes over what the answer to a HEAD says, or makes the stored response stale if it is about another one, section 4.3.5.
    func update(_ found: FoundResponse, by response: HTTPResponse, _ ask: HTTPAsk, _ moment: Moment) async {
        guard response.status == 200 else { return }
        func isSame(_ name: String) -> Bool {
            response.field(name).map { $0 == found.stored.field(name) } ?? true
        }
        let isDecoded = found.stored.field("Content-Encoding") != nil
        let length = isDecoded ? nil : response.field("Content-Length").flatMap { Int($0) }
        let isOther =
            found.stored.status != 200 || !isSame("ETag") || !isSame("Last-Modified")
            || length.map { $0 != found.stored.bodySize } == true
        var fresh = found
        if isOther {
            fresh.stored.policy.lifetime = 0
        } else {
            fresh.stored = updated(found.stored, by: response, moment)
        }
        _ = await save(fresh, by: response, ask, moment)
    }

    private func updated(_ stored: StoredResponse, by response: HTTPResponse, _ moment: Moment) -> StoredResponse {
        let kept = ["Content-Length", "Content-Encoding", "Content-Range"]
        let new = FieldList.removing(kept, from: ResponseRules(response, options).storedFields)
        // An age that was told before belongs to the answer before.
        var fields = FieldList.removing(new.map(\.0) + ["Age", "Date"], from: stored.fields) + new
        if response.field("Date") == nil { fields.append(("Date", HTTPDate.text(moment.received))) }
        let whole = HTTPResponse(status: stored.status, fields: fields, body: Data())
        var fresh = stored
        fresh.fields = fields
        fresh.policy = ResponseRules(whole, options).policy(requestedAt: moment.requested, receivedAt: moment.received)
        (fresh.requestedAt, fresh.receivedAt) = (moment.requested, moment.received)
        return fresh
    }

    /// Writes what has been updated, or removes it if it is no longer what its key says or may not be stored; returns whether it was written.
    func save(
        _ fresh: FoundResponse, by response: HTTPResponse, _ ask: HTTPAsk, _ moment: Moment
    ) async -> Bool {
        let rules = ResponseRules(
            HTTPResponse(status: fresh.stored.status, fields: fresh.stored.fields, body: Data()), options)
        let isKept =
            names(rules.vary, ask.request, isPublic: fresh.stored.policy.isPublic) == fresh.names
            && !ResponseRules(response, options).control.has("no-store") && rules.isStorable(ask.request)
        do {
            if isKept { return try await save(fresh, ask.key, ask.tags, moment) }
            if let found = ask.found { try await remove(found, ask) }
        } catch {
            if !Task.isCancelled { count { $0.failures += 1 } }
        }
        return false
    }

    /// Removes a response, unless another one is in its place.
    private func remove(_ found: FoundResponse, _ ask: HTTPAsk) async throws {
        let isRemoved = try await records.manager.transaction { [self] transaction in
            guard var record = try transaction.record(found.key, in: records),
                let response = record.response, response.requestedAt == found.stored.requestedAt,
                response.bodyNumber == found.stored.bodyNumber
            else { return false }
            record.response = nil
            try transaction.setValue(record, forKey: found.key, in: records, tags: ask.tags)
            return true
        }
        if isRemoved { await removeBody(of: found.key, found.stored) }
    }
}

extension CacheTransaction {
    /// Returns a record; nil if there is none, or it does not decode.
    fileprivate func record(
        _ key: String, in records: Cache<String, StoredRecord>
    ) throws(CacheError) -> StoredRecord? {
        do throws(CacheError) {
            return try value(forKey: key, in: records)
        } catch {
            if error.code != .undecodable { throw error }
            return nil
        }
    }
}
