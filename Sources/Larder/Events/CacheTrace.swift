internal import LarderStore

/// A call that has taken long, see ``CacheManager/Configuration/trace``.
public struct CacheTrace: Sendable {
    /// What a call has waited for.
    public enum Place: Hashable, Sendable {
        /// The store, with its file and those of other writers.
        case disk
        /// The closure of the program that loads values.
        case origin
        /// The tier that connects several machines.
        case tier
    }

    /// How a call has ended.
    public enum Outcome: Sendable {
        /// A read has found a value, which may have expired.
        case found
        /// A read has found none.
        case missing
        /// Another call has done what it should.
        case done
        /// A call has thrown.
        case failed(any Error)
    }

    /// What was done, in words such as "read the value" or "set the value".
    public let operation: String

    /// The name of the cache; nil for a call of the manager.
    public let cacheName: String?

    /// The key, as a text; nil for a call that concerns many.
    public let key: String?

    /// What the call has waited for.
    public let place: Place

    /// How the call has ended.
    public let outcome: Outcome

    /// How long it has taken.
    public let duration: Duration

    init(_ call: StoreTrace.Call) {
        (operation, cacheName, key) = (call.action, call.cache, call.key?.name)
        duration = .nanoseconds(call.nanoseconds)
        place =
            switch call.place {
            case .disk: .disk
            case .origin: .origin
            case .tier: .tier
            }
        outcome =
            switch call.outcome {
            case .done: .done
            case .found: .found
            case .missing: .missing
            case .failed(let error): .failed(error)
            }
    }
}

extension CacheTrace: CustomStringConvertible {
    /// A sentence, such as `cache "articles", key "7": read the value took 120 ms on the disk, found`.
    public var description: String {
        let names = [cacheName.map { "cache \"\($0)\"" }, key.map { "key \"\($0)\"" }].compactMap { $0 }
        let subject = names.isEmpty ? "manager" : names.joined(separator: ", ")
        let time = "\((duration / .milliseconds(1)).rounded()) ms".replacing(".0 ms", with: " ms")
        let place =
            switch place {
            case .disk: "on the disk"
            case .origin: "at the origin"
            case .tier: "in the tier"
            }
        return "\(subject): \(operation) took \(time) \(place), \(outcome)"
    }
}
