internal import LarderLocks

/// The failures of a handle, so that the log has a line for each cause, and then only how often it has come.
///
/// A view that reads a closed cache for each frame would else fill the log.
final class RepeatedFailures: Sendable {
    private let counts = Mutex<[CacheError.Code: Int]>([:])

    /// Counts a failure, and returns the text for the log; nil if it has no line.
    ///
    /// What concerns a single entry has a line each time, and a suspension has one for all caches. Anything else has one the first time, the tenth, the hundredth and
    /// so on.
    func text(for error: CacheError, _ message: String) -> String? {
        if [.tooLarge, .encodingFailed, .undecodable, .suspended].contains(error.code) { return message }
        let count = counts.withLock { counts in
            counts[error.code, default: 0] += 1
            return counts[error.code] ?? 1
        }
        if count == 1 { return message }
        var power = 10
        while power < count { power *= 10 }
        return power == count ? "\(message) This handle has met it \(count) times." : nil
    }
}
