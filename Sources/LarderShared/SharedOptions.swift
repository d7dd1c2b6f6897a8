internal import Larder
internal import LarderLocks
internal import LarderStore

/// The options of a cache that is shared through a tier; the defaults are meant for most.
public struct SharedOptions: Hashable, Sendable {
    /// The age of the right to load a key for all nodes.
    ///
    /// It is renewed while the load runs. If a node dies, the others wait for the rest of it.
    public var leaseAge: Duration

    /// The time for which a call waits while another node loads its key; then it loads the value itself, and does not store it.
    public var loadWaitLimit: Duration

    /// The number of removals that are kept for the tier while it cannot be reached; beyond it they become one of all entries.
    public var pendingLimit: Int

    /// The time for which opening waits until the node knows what it has missed.
    public var catchUpLimit: Duration

    /// The time without a reply of the tier after which copies on this node are not served; nil serves them until they expire.
    ///
    /// It begins with the last reply, and is noticed when the tier cannot be reached, up to a second later.
    public var maxSilence: Duration?

    /// A bound for the ages of copies on this node; nil for none.
    public var localMaxAge: Duration?

    /// The bytes of an encoded value and its extended data above which it stays on its node: a larger one is not stored in the tier,
    /// and each node loads it for itself.
    public var entryLimit: Int

    /// A Boolean value that indicates whether a call returns what it has found or loaded only once that is stored, in the tier and on this
    /// node.
    ///
    /// By default the call returns before that: after a crash right then, the value is fetched or loaded again.
    public var waits: Bool

    /// Creates options, each with its default.
    public init(
        leaseAge: Duration = .seconds(2), loadWaitLimit: Duration = .seconds(10), pendingLimit: Int = 10_000,
        catchUpLimit: Duration = .seconds(1), maxSilence: Duration? = nil, localMaxAge: Duration? = nil,
        entryLimit: Int = 1 << 20, waits: Bool = false
    ) {
        (self.entryLimit, self.waits) = (entryLimit, waits)
        (self.leaseAge, self.loadWaitLimit, self.pendingLimit) = (leaseAge, loadWaitLimit, pendingLimit)
        (self.catchUpLimit, self.maxSilence, self.localMaxAge) = (catchUpLimit, maxSilence, localMaxAge)
    }

    func check(_ cache: String) throws(CacheError) {
        let times = [leaseAge, loadWaitLimit, catchUpLimit, maxSilence ?? .zero, localMaxAge ?? .zero]
        if leaseAge >= .milliseconds(1), times.allSatisfy({ $0 >= .zero }), min(pendingLimit, entryLimit) >= 0 {
            return
        }
        throw CacheError(
            .invalidConfiguration,
            "The options of the shared cache \"\(cache)\" have a negative number, or a lease of less than a millisecond: \(self)."
        )
    }
}

/// What a shared cache has done with its tier since it was opened.
public struct SharedStatistics: Hashable, Sendable {
    /// The number of values that were found in the tier.
    public internal(set) var hits = 0

    /// The number of values that were asked for and that the tier did not have.
    public internal(set) var misses = 0

    /// The number of values and absences that this node has stored in the tier.
    public internal(set) var stores = 0

    /// The number of loads whose results were given to their callers alone, because something was removed in the meantime or
    /// another node has loaded too.
    public internal(set) var unkeptLoads = 0

    /// The number of messages of other nodes.
    public internal(set) var messages = 0

    /// The number of calls of the tier that have failed.
    ///
    /// While the tier cannot be reached nothing is called: see ``loadsAlone``.
    public internal(set) var failures = 0

    /// The number of values that this node has loaded without asking the tier, which could not be reached or was not up to date.
    public internal(set) var loadsAlone = 0

    /// The number of times that the tier has lost writes and removals which it had confirmed.
    public internal(set) var lostWrites = 0

    /// The number of removals that wait for the tier.
    public internal(set) var pendingRemovals = 0
}

/// The state of a shared cache, for a page or a probe that watches it.
///
/// A node that is alone serves its copies and loads for itself: whether a program is ready should not depend on it.
public enum SharedHealth: Hashable, Sendable {
    /// The node knows all that others have removed, and they what it has removed.
    case current
    /// The tier is there, and the node takes in what it has missed, or tells what it has removed.
    case catchingUp
    /// The tier cannot be reached, with the reason.
    case alone(String)
    /// The tier answers, and refuses writes or removals, with what it has said.
    case refused(String)
}

/// What a shared cache has for itself: its cache, and its entries in a tier.
///
/// Of two handles on one cache, or two caches on one object, each would take the messages of the other one for its own.
final class SharedPlace: Sendable {
    private enum Part: Hashable {
        case cache(ObjectIdentifier)
        case space(SharedSpace, ObjectIdentifier)
    }

    private static let taken = Mutex<Set<Part>>([])
    private let parts: Set<Part>
    private let leaving: @Sendable () -> Void
    private let isLeft = Atomic(false)

    /// Takes the place; nil if it is taken.
    ///
    /// - Parameter leaving: Called when it is left.
    init?(
        _ cache: AnyObject, _ tier: any SharedTier, _ space: SharedSpace, leaving: @escaping @Sendable () -> Void
    ) {
        let parts: Set = [Part.cache(ObjectIdentifier(cache)), .space(space, ObjectIdentifier(tier as AnyObject))]
        (self.parts, self.leaving) = (parts, leaving)
        let isFree = Self.taken.withLock { taken in
            if !taken.isDisjoint(with: parts) { return false }
            taken.formUnion(parts)
            return true
        }
        if !isFree {
            isLeft.store(true, ordering: .relaxed)
            return nil
        }
    }

    /// Leaves the place, once.
    func leave() {
        if isLeft.exchange(true, ordering: .relaxed) { return }
        leaving()
        Self.taken.withLock { $0.subtract(parts) }
    }
}

/// The clock of what waits for a tier, which is no clock of entries.
package enum SharedClock {
    typealias Instant = ContinuousClock.Instant

    static var now: Instant { .now }

    /// The days since 1970.
    package static var today: Int { Int(SystemClock.now() / 86_400_000) }

    /// Waits, but no longer than the task runs.
    package static func pause(_ time: Duration) async { do { try await Task.sleep(for: time) } catch {} }
}
