/// The keys of a call, and the answers that it has for them.
///
/// A call for one key and a call for many ask in the same loop, until no key is left. The callers that share a load may be
/// handles with other ages, and handles of managers that cannot write, so the result of a load need not be an answer for each of
/// them. A call asks again for the keys that it has no answer for: it leads a load then, or joins another one.
struct LoadAnswers<Key: Hashable & Sendable, Output: Sendable> {
    let rules: LoadRules<Key, Output>
    /// The keys that have no answer, each once, in the order of the call.
    private(set) var rest: [Key] = []
    private(set) var values: [Key: Output] = [:]
    private var start = Int64.max

    init(_ keys: some Sequence<Key>, _ rules: LoadRules<Key, Output>) {
        self.rules = rules
        var seen: Set<Key> = []
        rest = keys.filter { seen.insert($0).inserted }
    }

    /// Returns the keys to ask for.
    mutating func keysToAsk() -> [Key] {
        // A clock that is set back makes an expired value a live one.
        start = min(start, rules.now())
        rest.removeAll(where: rules.isAbsent)
        return rest
    }

    /// Adds the result of a load; a key that the call itself has loaded is answered, even if there is no value.
    mutating func add(_ loaded: [Key: Output], led: [Key]) {
        var expired: Set<Key> = []
        for key in rest {
            guard let value = loaded[key] else { continue }
            if rules.isExpired(value, start) { expired.insert(key) } else { values[key] = value }
        }
        rest.removeAll { values[$0] != nil || !expired.contains($0) && led.contains($0) }
    }
}

/// What a call accepts as the answer for a key.
package struct LoadRules<Key: Hashable & Sendable, Output: Sendable>: Sendable {
    /// Returns the time that the next load is judged by.
    package var now: @Sendable () -> Int64 = { 0 }
    /// Returns whether a value had expired for this caller at a time.
    package var isExpired: @Sendable (Output, Int64) -> Bool = { _, _ in false }
    /// Returns whether it is known that there is no value, and the call takes that for an answer.
    package var isAbsent: @Sendable (Key) -> Bool = { _ in false }
    /// Throws if the caller could not store a value.
    package var checkStoring: @Sendable () throws -> Void = {}

    package init() {}
}

/// The manager of the caller that leads a load cannot store a value.
///
/// Callers that joined lead a load of their own then.
struct LeaderCannotStore: Error {
    let error: any Error
}

/// Says which of its values a load may store.
///
/// A write that came while the closure ran is not overwritten by the late result. So the storing asks at the place where the
/// order of writes is decided, and every write before that place has been noted by then.
package struct LoadPermit<Key: Hashable & Sendable>: Sendable {
    let ask: @Sendable (Key) -> Bool
    let askIfBeaten: @Sendable (Key) -> Bool
    let rememberAbsence: @Sendable (Key, AgeRule, Int64) -> Void

    /// Returns whether the value for this key may be stored now.
    ///
    /// It may turn from true to false, but not from false to true.
    ///
    /// From true on, no other load stores the key until this storing has returned or thrown.
    package func mayStore(_ key: Key) -> Bool { ask(key) }

    /// Returns whether callers get the value that another load has stored, if this one may not store its own.
    package func isBeaten(_ key: Key) -> Bool { askIfBeaten(key) }

    /// Remembers that there is no value for this key, unless the key was written while the closure ran.
    package func noteAbsence(_ key: Key, for rule: AgeRule, now: Int64) { rememberAbsence(key, rule, now) }
}
