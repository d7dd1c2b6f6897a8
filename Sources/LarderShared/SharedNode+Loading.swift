internal import Foundation
internal import Larder
internal import LarderLocks
internal import LarderStore

/// The way of a value that this node does not have: the tier, else a load of one node while the others wait.
extension SharedNode {
    /// Loads keys on this node, by their places in the call; the results are in the order of the places.
    typealias Make = @Sendable (_ places: [Int]) async throws -> [Generated<Value>?]

    /// Waiting nodes look again after this time, if no message has come.
    private static var lookAgain: Duration { .milliseconds(250) }

    /// Returns the entries of keys, in their order, from this node, the tier, or a load.
    func load(
        _ keys: [Cache<Key, Value>.LoadItem], needsValue: Bool, acceptsAbsence: Bool,
        _ generate: (@Sendable ([Cache<Key, Value>.LoadRow]) async throws -> [Generated<Value>?])?
    ) async throws -> [CacheEntry<Key, Value>?] {
        try await cache.load(
            keys, needsValue: needsValue, isLook: generate == nil,
            skipsCopies: { self.isSilent.load(ordering: .relaxed) }, loading(acceptsAbsence: acceptsAbsence, generate))
    }

    /// Returns what asks the tier for rows that this node does not have, and loads those that the tier does not have.
    ///
    /// - Parameters:
    ///   - acceptsAbsence: A Boolean value that indicates whether it is an answer that there is no value.
    ///   - generate: Loads rows; nil to look only.
    func loading(
        acceptsAbsence: Bool, _ generate: (@Sendable ([Cache<Key, Value>.LoadRow]) async throws -> [Generated<Value>?])?
    ) -> Cache<Key, Value>.Generate {
        { rows in
            let make = generate.map { generate -> Make in
                { places in
                    let missing = places.map { rows[$0] }
                    let made = try await self.cache.tracing(
                        "load the value", missing.count == 1 ? missing[0].stored : nil, .origin
                    ) { try await generate(missing) }
                    return missing.indices.map { made[$0]?.resolved(missing[$0].entry) }
                }
            }
            // What this node has and refreshes is of no use in the tier. While it knows nothing of its copies, that may be newer.
            let isSilent = self.isSilent.load(ordering: .relaxed)
            let old = rows.map { isSilent ? nil : self.cache.timeLeft(of: $0) }
            let found = try await self.values(rows.map { $0.stored }, old, acceptsAbsence: acceptsAbsence, make)
            return Cache.Loaded(found.results, isEarly: !self.options.waits) { await found.store() }
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

    /// An entry that was discarded because it is to be refreshed.
    fileprivate struct Replaced: Sendable {
        let entry: SharedEntry
        let seenAt: SharedClock.Instant

        /// The entry with what is left of its age; nil if that is nothing.
        var rest: SharedEntry? {
            guard let age = entry.age else { return entry }
            var entry = entry
            entry.age = age - (SharedClock.now - seenAt)
            return age - (SharedClock.now - seenAt) < .milliseconds(1) ? nil : entry
        }
    }

    /// What the tier has or this node has loaded, and what is being stored in the tier.
    struct Found: Sendable {
        /// The entries of the tier in whose place others are loaded.
        fileprivate var replaced: [StoredKey: Replaced] = [:]
        /// In the order of the keys.
        fileprivate(set) var results: [Generated<Value>?]
        fileprivate var stores: [Task<Set<StoredKey>, Never>] = []

        /// Waits until everything is stored in the tier, and returns the keys whose values it has refused.
        func store() async -> Set<StoredKey> {
            var refused: Set<StoredKey> = []
            for store in stores { refused.formUnion(await store.value) }
            return refused
        }
    }

    /// Returns the values of keys.
    ///
    /// What is loaded without a lease is not stored in the tier, and on this node only if the tier has not answered.
    ///
    /// - Parameters:
    ///   - old: The milliseconds that are left to entries which are to be refreshed: an entry of the tier that lasts no longer is
    ///     replaced; nil for keys of which each entry will do.
    ///   - acceptsAbsence: A Boolean value that indicates whether it is an answer that there is no value.
    ///   - make: Loads keys; nil to look only.
    func values(
        _ keys: [StoredKey], _ old: [Int64?], acceptsAbsence: Bool, _ make: Make?
    ) async throws -> Found {
        // A load that begins on a closed node would store what another process may have removed.
        try requireOpen()
        var found = Found(results: Array(repeating: nil, count: keys.count))
        do {
            try await find(keys, old, acceptsAbsence, make, &found)
        } catch {
            // What was loaded is stored all the same.
            _ = await found.store()
            throw error
        }
        return found
    }

    private func find(
        _ keys: [StoredKey], _ old: [Int64?], _ acceptsAbsence: Bool, _ make: Make?, _ found: inout Found
    ) async throws {
        let (names, end) = (keys.map { SharedForm.bytes(of: $0) }, SharedClock.now + options.loadWaitLimit)
        var (rest, isFirst) = (Array(keys.indices), true)
        while !rest.isEmpty {
            try Task.checkCancellation()
            guard isReadable else {
                guard let made = try await make?(rest) else { return }
                count { $0.loadsAlone += made.count { $0 != nil } }
                for (place, result) in zip(rest, made) { found.results[place] = result.map(local) }
                return
            }
            // Few calls have to wait. Those that do ask again: what was stored before the waiter was there was not told.
            let waiter = isFirst ? nil : beginWaiting(rest.map { names[$0] })
            defer { if let waiter { endWaiting(waiter, names) } }
            let fetched = await fetch(rest.map { names[$0] }, lease: make == nil ? nil : options.leaseAge)
            var (toMake, leases, missing, isChanged) = ([Int](), [Int: SharedLease](), [Int](), isFirst)
            var useless: [(Int, SharedEntry)] = []
            for (place, fetch) in zip(rest, fetched) {
                switch fetch {
                case .entry(let entry):
                    if isOutlived(entry, by: old[place]) {
                        found.replaced[keys[place]] = Replaced(entry: entry, seenAt: SharedClock.now)
                    } else {
                        found.results[place] = result(of: entry, keys[place], acceptsAbsence)
                    }
                    if found.results[place] != nil { continue }
                    useless.append((place, entry))
                    missing.append(place)
                case .lease(let lease):
                    leases[place] = lease
                    toMake.append(place)
                case .missing: missing.append(place)
                case nil: toMake.append(place)
                }
            }
            count { [hits = rest.count - toMake.count - missing.count, misses = toMake.count] in
                $0.hits += hits
                $0.misses += misses
            }
            guard let make else { return }
            if await discard(useless.map { ($1, names[$0]) }) { isChanged = true }
            if !toMake.isEmpty { try await load(toMake, of: keys, leases, make, &found) }
            rest = missing
            if rest.isEmpty { break }
            if SharedClock.now >= end {
                let made = try await make(rest)
                count { $0.unkeptLoads += made.count { $0 != nil } }
                for (place, result) in zip(rest, made) { found.results[place] = result?.unstored }
                return
            }
            if !isChanged { await waiter?.wait(Self.lookAgain) }
            isFirst = false
        }
    }

    /// Says whether the tier has any of the keys.
    private static func outcome(of fetched: [SharedFetch]) -> StoreTrace.Call.Outcome {
        fetched.contains { if case .entry = $0 { true } else { false } } ? .found : .missing
    }

    /// Asks the tier for keys, all at once; nil for one for which it does not answer.
    private func fetch(_ names: [Data], lease: Duration?) async -> [SharedFetch?] {
        let start = SharedClock.now
        let found = await calling("fetch from the tier", names.count == 1 ? names[0] : nil, outcome: Self.outcome) {
            () async throws -> [SharedFetch] in
            if names.count > 1 { return try await tier.fetch(keys: names, in: space, lease: lease) }
            return [try await tier.fetch(names[0], in: space, lease: lease)]
        }
        guard let found, found.count == names.count else { return names.map { _ in nil } }
        let passed = SharedClock.now - start
        return found.map { fetch in
            guard case .entry(var entry) = fetch else { return fetch }
            entry.age = entry.age.map { max(.zero, $0 - passed) }
            return .entry(entry)
        }
    }

    /// Calls the tier; returns nil and counts if it fails.
    func calling<R: Sendable>(
        _ action: String, _ key: Data? = nil, _ work: SharedWork = .store,
        outcome: (R) -> StoreTrace.Call.Outcome = { _ in .done },
        _ call: () async throws -> R
    ) async -> R? {
        do { return try await cache.tracing(action, key.flatMap(SharedForm.key), .tier, outcome: outcome, call) } catch
        {
            count { $0.failures += 1 }
            noteRefusal(error, of: work)
            return nil
        }
    }

    // MARK: What the tier has

    /// Returns whether an entry lasts hardly longer than the one of this node that is to be refreshed, so that it is the same.
    private func isOutlived(_ entry: SharedEntry, by old: Int64?) -> Bool {
        guard let old, !entry.isAbsent else { return false }
        guard let age = entry.age else { return old == .max }
        // The clock of the tier, and the way of the answer, differ by little.
        return age <= .milliseconds(old.addingSaturated(min(1000, old / 4 + 10)))
    }

    /// Returns the result that an entry is; nil if it is of no use.
    private func result(of entry: SharedEntry, _ key: StoredKey, _ acceptsAbsence: Bool) -> Generated<Value>? {
        if entry.isAbsent {
            return acceptsAbsence ? Generated.none(for: local(entry.age.map { .duration($0) })) : nil
        }
        do throws(CacheError) {
            let value = try cache.decoded(entry.payload, of: key)
            var attributes = EntryAttributes(
                maxAge: local(entry.age.map { .duration($0) }), extendedData: entry.extendedData, tags: entry.tags)
            // The tier has no costs.
            attributes.cost = cache.whole(EntryAttributes(), key, value).cost
            attributes.payload = entry.payload
            // It ends now.
            if let age = entry.age, age < .milliseconds(1) { return Generated(outcome: .unstored(value, attributes)) }
            return Generated(outcome: .value(value, attributes))
        } catch {
            report(.undecodable, "What the tier has does not decode: \(error.message)", key: key.name)
            return nil
        }
    }

    /// Removes entries of no use from the tier, so that this node can get leases, and returns whether one may be removed.
    private func discard(_ entries: [(SharedEntry, Data)]) async -> Bool {
        if entries.isEmpty { return false }
        return await withTaskGroup(of: Bool.self) { group in
            for (entry, name) in entries {
                group.addTask {
                    await self.calling("discard in the tier", name) {
                        try await self.tier.discard(entry, forKey: name, in: self.space)
                    } != nil
                }
            }
            return await group.reduce(false) { $0 || $1 }
        }
    }

    // MARK: Loading

    /// A value that this node may store in the tier.
    private struct Leased: Sendable {
        let key: StoredKey
        let lease: SharedLease
        let entry: SharedEntry
    }

    /// Loads keys, and begins to store in the tier those for which there is a lease.
    private func load(
        _ places: [Int], of keys: [StoredKey], _ leases: [Int: SharedLease], _ make: Make, _ found: inout Found
    ) async throws {
        let (leased, replaced) = (leases.map { (keys[$0], $1) }, found.replaced)
        let renewal = leases.isEmpty ? nil : Task { await self.renew(leased) }
        var entries: [Leased] = []
        do {
            let made = try await withTaskCancellationHandler {
                try await make(places)
            } onCancel: {
                // Another node may load, whatever this load does with its cancellation.
                renewal?.cancel()
                Task { await self.giveBack(leased, replaced) }
            }
            // What is loaded after its time is stored nowhere.
            try Task.checkCancellation()
            for (place, result) in zip(places, made) {
                guard let result = result.map({ encoded($0, keys[place]) }) else { continue }
                found.results[place] = local(result)
                if let lease = leases[place], let entry = try entry(of: result), !isTooLarge(entry) {
                    entries.append(Leased(key: keys[place], lease: lease, entry: entry))
                }
            }
        } catch {
            renewal?.cancel()
            await giveBack(leased, replaced)
            throw error
        }
        if leases.isEmpty { return }
        found.stores.append(
            Task { [entries] in
                defer { renewal?.cancel() }
                let made = Set(entries.map { $0.key })
                async let rest: Void = self.giveBack(leased.filter { !made.contains($0.0) }, replaced)
                let answers = await self.store(entries)
                let refused = Set(zip(entries, answers).filter { $1 == false }.map { $0.0.key })
                self.count { [count = refused.count] in $0.unkeptLoads += count }
                // One without an answer may be stored, and what others remove will be known.
                let unanswered = Set(zip(entries, answers).filter { $1 == nil }.map { $0.0.key })
                await self.renew(leased.filter { unanswered.contains($0.0) }, age: nil)
                await rest
                return refused
            })
    }

    /// Ends leases for which nothing was loaded; an entry that was discarded for one is stored again.
    ///
    /// The tier refuses it if it was removed in the meantime, since that has ended the lease.
    private func giveBack(_ leases: [(StoredKey, SharedLease)], _ replaced: [StoredKey: Replaced]) async {
        await withTaskGroup(of: Void.self) { group in
            for (key, lease) in leases {
                guard let entry = replaced[key]?.rest else { continue }
                let name = SharedForm.bytes(of: key)
                group.addTask {
                    _ = await self.calling("store in the tier", name) {
                        try await self.tier.store(entry, forKey: name, in: self.space, lease: lease)
                    }
                }
            }
        }
        await renew(leases.filter { replaced[$0.0]?.rest == nil }, age: nil)
    }

    /// Stores entries in the tier, all at once, and returns whether that was done; nil for one for which the tier does not answer.
    private func store(_ entries: [Leased]) async -> [Bool?] {
        if entries.count == 1 { return [await store(entries[0])] }
        return await withTaskGroup(of: (Int, Bool?).self) { group in
            for (place, entry) in entries.enumerated() { group.addTask { (place, await self.store(entry)) } }
            return await group.reduce(into: Array(repeating: nil, count: entries.count)) { $0[$1.0] = $1.1 }
        }
    }

    private func store(_ leased: Leased) async -> Bool? {
        let key = SharedForm.bytes(of: leased.key)
        let isStored = await calling("store in the tier", key) {
            try await tier.store(leased.entry, forKey: key, in: space, lease: leased.lease)
        }
        if isStored == true {
            count { $0.stores += 1 }
            noteAccepted(.store)
        }
        return isStored
    }

    /// Returns a result with its encoded value, which is encoded once for the tier and for this node.
    private func encoded(_ result: Generated<Value>, _ key: StoredKey) -> Generated<Value> {
        guard case .value(let value, var attributes) = result.outcome else { return result }
        attributes = cache.whole(attributes, key, value)
        attributes.maxAge = drawn(attributes.maxAge)
        // The load reports it if it fails again.
        do throws(CacheError) {
            attributes.payload = try cache.encoded(value, of: key)
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
    private func renew(_ leases: [(StoredKey, SharedLease)]) async {
        let end = SharedClock.now + max(options.loadWaitLimit, Self.longestLoad)
        while SharedClock.now < end {
            await SharedClock.pause(options.leaseAge / 3)
            if Task.isCancelled { return }
            await renew(leases, age: options.leaseAge)
        }
    }

    private func renew(_ leases: [(StoredKey, SharedLease)], age: Duration?) async {
        if leases.isEmpty { return }
        // One that is gone is not renewed, and what was loaded for it is not stored.
        await withTaskGroup(of: Void.self) { group in
            for (key, lease) in leases {
                group.addTask {
                    _ = await self.calling("renew a lease") {
                        try await self.tier.renew(
                            lease, forKey: SharedForm.bytes(of: key), in: self.space, age: age)
                    }
                }
            }
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

    /// Returns an age of which the jitter was drawn, so that the tier and this node have the same end; else the age.
    func drawn(_ age: MaxAge?) -> MaxAge? {
        if case .jittered = (age ?? cache.maxAge).rule { (age ?? cache.maxAge).drawn } else { age }
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
        let end = rule.drawn.end(writtenAt: now, accessedAt: now, id: 0)
        return end == .max ? nil : .milliseconds(end.subtractingSaturated(now))
    }

    /// Returns the age of a copy on this node.
    func local(_ age: MaxAge?) -> MaxAge {
        let age = age ?? cache.maxAge
        guard let limit = options.localMaxAge else { return age }
        let now = cache.now
        let bound = MaxAge.seconds(limit / .seconds(1))
        func end(_ age: MaxAge) -> Int64 { age.rule.end(writtenAt: now, accessedAt: now, id: 0) }
        return end(bound) < end(age) ? bound : age
    }

    private func local(_ result: Generated<Value>) -> Generated<Value> {
        if options.localMaxAge == nil { return result }
        switch result.outcome {
        case .value(let value, var attributes):
            attributes.maxAge = local(attributes.maxAge)
            return Generated(outcome: .value(value, attributes))
        case .absent(let age): return Generated(outcome: .absent(local(age)))
        default: return result
        }
    }

    // MARK: Waiting

    private func beginWaiting(_ names: [Data]) -> SharedWaiter {
        let waiter = SharedWaiter()
        state.withLock { state in
            for name in names { state.waiters[name, default: [:]][ObjectIdentifier(waiter)] = waiter }
        }
        return waiter
    }

    private func endWaiting(_ waiter: SharedWaiter, _ names: [Data]) {
        state.withLock { state in
            for name in names {
                state.waiters[name]?[ObjectIdentifier(waiter)] = nil
                if state.waiters[name]?.isEmpty == true { state.waiters[name] = nil }
            }
        }
    }
}

extension Generated where Value: Sendable {
    /// The result for its callers alone.
    var unstored: Generated {
        switch outcome {
        case .value(let value, let attributes): Generated(outcome: .unstored(value, attributes))
        case .absent: .none(for: .milliseconds(0))
        case .unstored, .notModified: self
        }
    }

    /// The old value as a new one, if it was not modified: other nodes may not have it.
    func resolved<Key>(_ old: CacheEntry<Key, Value>?) -> Generated {
        guard case .notModified = outcome, let old else { return self }
        let (written, end) = (old.metadata.writtenAt, old.metadata.expiresAt)
        let refresh = old.metadata.refreshesAt.map { Duration.seconds($0.timeIntervalSince(written)) }
        return .value(
            old.value, maxAge: end.map { .timeInterval($0.timeIntervalSince(written)) }, cost: old.metadata.cost,
            extendedData: old.extendedData, tags: old.metadata.tags, refreshAfter: refresh)
    }
}
