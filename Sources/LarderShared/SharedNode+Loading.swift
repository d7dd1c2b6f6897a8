internal import Foundation
internal import Larder
internal import LarderLocks
internal import LarderStore

/// The way of a value that this node does not have: the tier, else a load of one node while the others wait.
extension SharedNode {
    typealias Item = Cache<Key, Value>.LoadItem
    typealias Results = [Key: Generated<Value>]
    /// Loads keys on this node.
    typealias Make = @Sendable ([Item]) async throws -> Results

    /// Waiting nodes look again after this time, if no message has come.
    private static var lookAgain: Duration { .milliseconds(250) }

    /// Returns the entries of keys, in their order, from this node, the tier, or a load.
    func load(
        _ keys: [Item], needsValue: Bool, acceptsAbsence: Bool,
        _ generate: Cache<Key, Value>.Generate?
    ) async throws -> [CacheEntry<Key, Value>?] {
        try await cache.load(
            keys, needsValue: needsValue, isLook: generate == nil,
            skipsCopies: { self.isSilent.load(ordering: .relaxed) }
        ) { rows in
            let make = generate.map { generate -> Make in
                { items in
                    let keys = Set(items.map { $0.stored })
                    let missing = rows.filter { keys.contains($0.stored) }
                    let made = try await generate(missing)
                    return zip(missing, made).reduce(into: [:]) { $0[$1.0.key] = $1.1?.resolved($1.0.entry) }
                }
            }
            let results = try await self.values(
                rows.map { ($0.key, $0.stored) }, acceptsAbsence: acceptsAbsence, make)
            return rows.map { results[$0.key] }
        }
    }

    func entry(
        _ key: Key, acceptsAbsence: Bool,
        _ generate: @escaping @Sendable (Key, CacheEntry<Key, Value>?) async throws -> Generated<Value>
    ) async throws -> CacheEntry<Key, Value>? {
        try requireOpen()
        let stored = try cache.storedKey(of: key)
        if acceptsAbsence, !isSilent.load(ordering: .relaxed), cache.isKnownToBeAbsent(stored) {
            return try await cache.entry(forKey: key)
        }
        return try await load([(key, stored)], needsValue: !acceptsAbsence, acceptsAbsence: acceptsAbsence) {
            [try await generate(key, $0[0].entry)]
        }[0]
    }

    /// Returns the values of keys.
    ///
    /// What is loaded without a lease is not stored in the tier, and on this node only if the tier has not answered.
    ///
    /// - Parameters:
    ///   - acceptsAbsence: A Boolean value that indicates whether it is an answer that there is no value.
    ///   - make: Loads keys; nil to look only.
    func values(_ keys: [Item], acceptsAbsence: Bool, _ make: Make?) async throws -> Results {
        var (results, rest, end) = (Results(), keys, SharedClock.now + options.loadWait)
        while !rest.isEmpty {
            try Task.checkCancellation()
            guard isReadable else {
                return results.merging(try await make?(rest).mapValues(local) ?? [:]) { $1 }
            }
            let waiter = beginWaiting(rest)
            defer { endWaiting(waiter, rest) }
            let found = await fetch(rest, lease: make == nil ? nil : options.lease)
            var (toMake, leases, missing, isChanged) = ([Item](), [StoredKey: SharedLease](), [Item](), false)
            for (item, fetch) in zip(rest, found) {
                switch fetch {
                case .entry(let entry):
                    if let result = result(of: entry, item, acceptsAbsence) {
                        results[item.key] = result
                    } else {
                        if make != nil, await discard(entry, item) { isChanged = true }
                        missing.append(item)
                    }
                case .lease(let lease):
                    leases[item.stored] = lease
                    toMake.append(item)
                case .missing: missing.append(item)
                case nil: toMake.append(item)
                }
            }
            count { [hits = rest.count - toMake.count - missing.count, misses = toMake.count] in
                $0.hits += hits
                $0.misses += misses
            }
            guard let make else { return results }
            if !toMake.isEmpty { results.merge(try await load(toMake, leases, make)) { $1 } }
            rest = missing
            if rest.isEmpty { break }
            if SharedClock.now >= end {
                return results.merging(unstored(try await make(rest))) { $1 }
            }
            if !isChanged { await waiter.wait(Self.lookAgain) }
        }
        return results
    }

    /// Asks the tier for keys, all at once; nil for one for which it does not answer.
    private func fetch(_ keys: [Item], lease: Duration?) async -> [SharedFetch?] {
        if keys.count == 1 { return [await fetch(keys[0], lease)] }
        return await withTaskGroup(of: (Int, SharedFetch?).self) { group in
            for (index, item) in keys.enumerated() { group.addTask { (index, await self.fetch(item, lease)) } }
            return await group.reduce(into: Array(repeating: nil, count: keys.count)) { $0[$1.0] = $1.1 }
        }
    }

    private func fetch(_ item: Item, _ lease: Duration?) async -> SharedFetch? {
        let start = SharedClock.now
        let found = await calling { try await tier.fetch(SharedForm.bytes(of: item.stored), in: space, lease: lease) }
        guard case .entry(var entry) = found else { return found }
        entry.age = entry.age.map { max(.zero, $0 - (SharedClock.now - start)) }
        return .entry(entry)
    }

    /// Calls the tier; returns nil and counts if it fails.
    func calling<R: Sendable>(_ work: SharedWork = .store, _ call: () async throws -> R) async -> R? {
        do { return try await call() } catch {
            count { $0.failures += 1 }
            noteRefusal(error, of: work)
            return nil
        }
    }

    // MARK: What the tier has

    /// Returns the result that an entry is; nil if it is of no use.
    private func result(of entry: SharedEntry, _ item: Item, _ acceptsAbsence: Bool) -> Generated<Value>? {
        if entry.isAbsent {
            return acceptsAbsence ? Generated.none(for: local(entry.age.map { .duration($0) })) : nil
        }
        do throws(CacheError) {
            let value = try cache.decoded(entry.payload, of: item.stored)
            var attributes = EntryAttributes(
                maxAge: local(entry.age.map { .duration($0) }), extendedData: entry.extendedData, tags: entry.tags)
            attributes.payload = entry.payload
            // It ends now.
            if let age = entry.age, age < .milliseconds(1) { return Generated(outcome: .unstored(value, attributes)) }
            return Generated(outcome: .value(value, attributes))
        } catch {
            report(.undecodable, "What the tier has does not decode: \(error.message)", key: item.stored.name)
            return nil
        }
    }

    /// Removes an entry of no use from the tier, so that this node can get a lease.
    private func discard(_ entry: SharedEntry, _ item: Item) async -> Bool {
        await calling { try await tier.discard(entry, forKey: SharedForm.bytes(of: item.stored), in: space) } != nil
    }

    // MARK: Loading

    private func load(
        _ keys: [Item], _ leases: [StoredKey: SharedLease], _ make: Make
    ) async throws -> Results {
        let renewal = leases.isEmpty ? nil : Task { await self.renew(leases) }
        defer { renewal?.cancel() }
        var (made, entries) = (Results(), [(item: Item, lease: SharedLease, entry: SharedEntry)]())
        do {
            made = try await make(keys)
            for item in keys {
                guard let result = made[item.key].map({ encoded($0, item) }) else { continue }
                made[item.key] = local(result)
                if let lease = leases[item.stored], let entry = try entry(of: result), !isTooLarge(entry) {
                    entries.append((item, lease, entry))
                }
            }
        } catch {
            await renew(leases, age: nil)
            throw error
        }
        var left = leases
        for (item, isStored) in await store(entries) {
            left[item.stored] = nil
            if let result = made[item.key], !isStored { made.merge(unstored([item.key: result])) { $1 } }
        }
        await renew(left, age: nil)
        return made
    }

    /// Stores entries in the tier, all at once, and returns for which it has answered, and whether it has stored them.
    ///
    /// One without an answer may be stored there, and what others remove will be known.
    private func store(_ entries: [(item: Item, lease: SharedLease, entry: SharedEntry)]) async -> [(Item, Bool)] {
        await withTaskGroup(of: (Item, Bool?).self) { group in
            for (item, lease, entry) in entries {
                group.addTask {
                    let key = SharedForm.bytes(of: item.stored)
                    let isStored = await self.calling {
                        try await self.tier.store(entry, forKey: key, in: self.space, lease: lease)
                    }
                    if isStored == true {
                        self.count { $0.stores += 1 }
                        self.noteAccepted(.store)
                    }
                    return (item, isStored)
                }
            }
            return await group.reduce(into: []) { if let isStored = $1.1 { $0.append(($1.0, isStored)) } }
        }
    }

    /// Returns a result with its encoded value, which is encoded once for the tier and for this node.
    private func encoded(_ result: Generated<Value>, _ item: Item) -> Generated<Value> {
        guard case .value(let value, var attributes) = result.outcome else { return result }
        // The load reports it if it fails again.
        do throws(CacheError) {
            attributes.payload = try cache.encoded(value, of: item.stored)
        } catch {
            return result
        }
        return Generated(outcome: .value(value, attributes))
    }

    /// Returns the entry of a result for the tier; nil if it is none.
    private func entry(of result: Generated<Value>) throws(CacheError) -> SharedEntry? {
        let entry: SharedEntry
        switch result.outcome {
        case .value(_, let attributes):
            guard let payload = attributes.payload else { return nil }
            entry = try self.entry(payload, attributes)
        case .absent(let age): entry = SharedEntry(payload: Data(), age: try left(of: age), isAbsent: true)
        case .unstored, .notModified: return nil
        }
        return entry.age.map { $0 < .milliseconds(1) } == true ? nil : entry
    }

    /// The time after which a load counts as one that hangs, so that another node takes over.
    private static var longestLoad: Duration { .seconds(60) }

    /// Keeps leases while a load runs, but not those of one that hangs.
    private func renew(_ leases: [StoredKey: SharedLease]) async {
        let end = SharedClock.now + max(options.loadWait, Self.longestLoad)
        while SharedClock.now < end {
            await SharedClock.pause(options.lease / 3)
            if Task.isCancelled { return }
            await renew(leases, age: options.lease)
        }
    }

    private func renew(_ leases: [StoredKey: SharedLease], age: Duration?) async {
        // One that is gone is not renewed, and what was loaded for it is not stored.
        await withTaskGroup(of: Void.self) { group in
            for (key, lease) in leases {
                group.addTask {
                    _ = await self.calling {
                        try await self.tier.renew(
                            lease, forKey: SharedForm.bytes(of: key), in: self.space, age: age)
                    }
                }
            }
        }
    }

    private func unstored(_ results: Results) -> Results {
        count { $0.unstored += results.count }
        return results.mapValues { result in
            if case .value(let value, let attributes) = result.outcome {
                return Generated(outcome: .unstored(value, attributes))
            }
            if case .absent = result.outcome { return .none(for: .milliseconds(0)) }
            return result
        }
    }

    // MARK: Ages

    /// Returns an entry for the tier.
    func entry(_ payload: Data, _ attributes: EntryAttributes) throws(CacheError) -> SharedEntry {
        SharedEntry(
            payload: payload, age: try left(of: attributes.maxAge),
            tags: Set(attributes.tags.map { CBORText.normalized($0) }),
            extendedData: attributes.extendedData)
    }

    func isTooLarge(_ entry: SharedEntry) -> Bool {
        entry.payload.count + (entry.extendedData?.count ?? 0) > options.entryLimit
    }

    /// Returns what is left of an age, or of that of the cache; nil if it never ends.
    private func left(of age: MaxAge?) throws(CacheError) -> Duration? {
        let rule = (age ?? cache.maxAge).rule
        if case .sinceAccess = rule {
            throw CacheError(
                .invalidConfiguration,
                "Cache \"\(cache.name)\" is shared, and an age since the last access is nothing that other nodes know. Use an age"
                    + " since the write.")
        }
        let now = cache.now
        let end = rule.end(writtenAt: now, accessedAt: now)
        return end == .max ? nil : .milliseconds(end.subtractingSaturated(now))
    }

    /// Returns the age of a copy on this node.
    func local(_ age: MaxAge?) -> MaxAge {
        let age = age ?? cache.maxAge
        guard let limit = options.localMaxAge else { return age }
        let now = cache.now
        let bound = MaxAge.seconds(limit / .seconds(1))
        return bound.rule.end(writtenAt: now, accessedAt: now) < age.rule.end(writtenAt: now, accessedAt: now)
            ? bound : age
    }

    private func local(_ result: Generated<Value>) -> Generated<Value> {
        guard options.localMaxAge != nil, case .value(let value, var attributes) = result.outcome else { return result }
        attributes.maxAge = local(attributes.maxAge)
        return Generated(outcome: .value(value, attributes))
    }

    // MARK: Waiting

    private func beginWaiting(_ keys: [Item]) -> SharedWaiter {
        let waiter = SharedWaiter()
        state.withLock { state in
            for item in keys {
                state.waiters[SharedForm.bytes(of: item.stored), default: [:]][ObjectIdentifier(waiter)] = waiter
            }
        }
        return waiter
    }

    private func endWaiting(_ waiter: SharedWaiter, _ keys: [Item]) {
        state.withLock { state in
            for item in keys {
                let key = SharedForm.bytes(of: item.stored)
                state.waiters[key]?[ObjectIdentifier(waiter)] = nil
                if state.waiters[key]?.isEmpty == true { state.waiters[key] = nil }
            }
        }
    }
}

extension Generated where Value: Sendable {
    /// The old value as a new one, if it was not modified: other nodes may not have it.
    func resolved<Key>(_ old: CacheEntry<Key, Value>?) -> Generated {
        guard case .notModified = outcome, let old else { return self }
        let (written, end) = (old.metadata.writtenAt, old.metadata.expiresAt)
        return .value(
            old.value, maxAge: end.map { .timeInterval($0.timeIntervalSince(written)) }, cost: old.metadata.cost,
            extendedData: old.extendedData, tags: old.metadata.tags)
    }
}
