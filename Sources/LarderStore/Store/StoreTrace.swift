/// Whom a program has asked to be told of calls that take long.
package struct StoreTrace: Sendable {
    /// A call that has taken long.
    package struct Call: Sendable {
        /// What has answered.
        package enum Place: Sendable { case disk, origin, tier }

        package enum Outcome: Sendable {
            case done, found, missing
            case failed(any Error)
        }

        package let action: String
        package let cache: String?
        package let key: StoredKey?
        package let place: Place
        package let outcome: Outcome
        package let nanoseconds: Int64
    }

    private let threshold: Int64
    private let report: @Sendable (Call) -> Void

    /// - Parameters:
    ///   - threshold: The nanoseconds from which on a call is reported.
    ///   - report: Called on the thread of the call.
    package init(threshold: Int64, _ report: @escaping @Sendable (Call) -> Void) {
        (self.threshold, self.report) = (threshold, report)
    }

    /// Reports a call that has begun at a moment, if it has taken long.
    package func note(
        _ action: String, _ cache: String?, _ key: StoredKey?, _ place: Call.Place, _ outcome: Call.Outcome,
        since start: Int64
    ) {
        let time = SystemClock.nanoseconds() - start
        if time < threshold { return }
        report(Call(action: action, cache: cache, key: key, place: place, outcome: outcome, nanoseconds: time))
    }

    /// Runs a call, and reports it if it takes long.
    package func following<R, Failure: Error>(
        _ action: String, _ cache: String?, _ key: StoredKey?, _ place: Call.Place,
        outcome: (R) -> Call.Outcome = { _ in .done }, _ body: () throws(Failure) -> R
    ) throws(Failure) -> R {
        let start = SystemClock.nanoseconds()
        do throws(Failure) {
            let result = try body()
            note(action, cache, key, place, outcome(result), since: start)
            return result
        } catch {
            note(action, cache, key, place, .failed(error), since: start)
            throw error
        }
    }

    /// Runs a call of a task, and reports it if it takes long.
    package func following<R>(
        _ action: String, _ cache: String?, _ key: StoredKey?, _ place: Call.Place,
        outcome: (R) -> Call.Outcome = { _ in .done }, _ body: () async throws -> R
    ) async throws -> R {
        let start = SystemClock.nanoseconds()
        do {
            let result = try await body()
            note(action, cache, key, place, outcome(result), since: start)
            return result
        } catch {
            note(action, cache, key, place, .failed(error), since: start)
            throw error
        }
    }
}
