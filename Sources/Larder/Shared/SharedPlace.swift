internal import LarderLocks

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
