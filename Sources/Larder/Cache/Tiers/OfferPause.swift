#if LARDER_TSAN
internal import LarderTSan
internal import struct Synchronization.Atomic
#else
internal import Synchronization
#endif

/// Keeps what reads find on disk out of memory while a commit of several keys is on its way there.
///
/// Between the commit and the moment in which memory learns of it, one read may have found the old and another the new:
/// kept together they would be what never was. It ends at the latest when nobody has it any more.
final class OfferPause<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    private let core: SubCache<Key, Value>
    private let isOn = Mutex(false)

    init(_ core: SubCache<Key, Value>) {
        self.core = core
    }

    deinit { end() }

    /// Begins before the commit.
    ///
    /// - Parameter hidden: A key whose copy goes now, so that until memory has learned of it the disk answers.
    /// - Returns: The copy, to be released when nothing is held.
    @discardableResult
    func begin(hiding hidden: (key: Key, hash: UInt64)? = nil) -> (any Sendable)? {
        let wasOn = isOn.withLock { isOn in
            defer { isOn = true }
            return isOn
        }
        if wasOn, hidden == nil { return nil }
        return core.front.withLock { front in
            if !wasOn { front.pauses += 1 }
            guard let hidden else { return nil }
            return front.drop(hidden.key, hash: hidden.hash)
        }
    }

    /// Memory has learned of it, or there was no commit.
    func end() {
        let wasOn = isOn.withLock { isOn in
            defer { isOn = false }
            return isOn
        }
        if wasOn { core.front.withLock { $0.pauses -= 1 } }
    }
}
