internal import Foundation

/// The manager of whoever leads a flight cannot store what would be made: that is no answer for those who joined.
struct LeaderRefusal: Error {
    let error: CacheError
}

/// What a flight gives is everybody's who joined it, and they may be handles of other ages, and of other managers.
///
/// So each asks until the answer is one for its handle: not a value that another age lets live and its own does not, nor the
/// refusal of a manager that is not its own. Whoever asks again leads, or joins somebody else.
extension Cache {
    /// Throws where what is made could not be stored, in a flight that this handle leads.
    func checkLeading() throws {
        do throws(CacheError) {
            try checkGenerating()
        } catch {
            throw LeaderRefusal(error: error)
        }
    }

    func answer(_ ask: () throws -> CacheEntry<Key, Value>) throws -> CacheEntry<Key, Value> {
        var start = Int64.max
        while true {
            start = startOfAsking(after: start)
            do {
                let entry = try ask()
                if !wasOver(entry, at: start) { return entry }
            } catch is LeaderRefusal {
                try checkGenerating()
            }
        }
    }

    func answer(_ ask: () async throws -> CacheEntry<Key, Value>) async throws -> CacheEntry<Key, Value> {
        var start = Int64.max
        while true {
            start = startOfAsking(after: start)
            do {
                let entry = try await ask()
                if !wasOver(entry, at: start) { return entry }
            } catch is LeaderRefusal {
                try checkGenerating()
            }
        }
    }

    func answers(
        _ keys: [Key], _ ask: ([Key]) throws -> [Key: CacheEntry<Key, Value>]
    ) throws -> [Key: CacheEntry<Key, Value>] {
        var start = Int64.max
        var (answers, rest): ([Key: CacheEntry<Key, Value>], [Key]) = ([:], keys)
        while !rest.isEmpty {
            start = startOfAsking(after: start)
            do {
                rest = take(try ask(rest), into: &answers, at: start)
            } catch is LeaderRefusal {
                try checkGenerating()
            }
        }
        return answers
    }

    func answers(
        _ keys: [Key], _ ask: ([Key]) async throws -> [Key: CacheEntry<Key, Value>]
    ) async throws -> [Key: CacheEntry<Key, Value>] {
        var start = Int64.max
        var (answers, rest): ([Key: CacheEntry<Key, Value>], [Key]) = ([:], keys)
        while !rest.isEmpty {
            start = startOfAsking(after: start)
            do {
                rest = take(try await ask(rest), into: &answers, at: start)
            } catch is LeaderRefusal {
                try checkGenerating()
            }
        }
        return answers
    }

    /// Keeps what is an answer, and gives the keys that are to be asked for again.
    private func take(
        _ found: [Key: CacheEntry<Key, Value>], into answers: inout [Key: CacheEntry<Key, Value>], at start: Int64
    ) -> [Key] {
        var over: [Key] = []
        for (key, entry) in found {
            if wasOver(entry, at: start) { over.append(key) } else { answers[key] = entry }
        }
        return over
    }

    /// The moment by which what was found may be over; a clock that is set back meanwhile makes what was over one of now.
    private func startOfAsking(after earlier: Int64) -> Int64 {
        terms.rule.isUnlimited ? .min : Swift.min(earlier, terms.now())
    }

    /// Whether an entry that was found was over by this handle's age when the call began; one that slides began anew when it was
    /// found.
    private func wasOver(_ entry: CacheEntry<Key, Value>, at start: Int64) -> Bool {
        let rule = terms.rule
        if rule.isUnlimited || rule.isSliding || entry.metadata.isMade || entry.metadata.hasOwnAge { return false }
        let writtenAt = SystemClock.milliseconds(of: entry.metadata.writtenAt)
        return writtenAt < start && rule.isExpired(start: writtenAt, now: start)
    }
}
