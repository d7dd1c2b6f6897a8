public import Foundation

/// Something that happened to a store and that nobody asked for.
public struct CacheEvent: Sendable {
    /// What happened.
    public enum Kind: Sendable {
        /// The database was damaged, or newer than the library: a new one was made, and the old one stands at `setAside`.
        case recovered(setAside: URL)
    }

    /// What happened.
    public let kind: Kind

    /// The sub-cache it concerns, where it is one.
    public let cacheName: String?

    /// The key it concerns, where it is one, as text.
    public let key: String?

    /// What happened, in a sentence.
    public let message: String

    /// How many events this stream has lost before this one, because nobody took them in time.
    public internal(set) var lostBefore = 0

    package init(_ kind: Kind, cacheName: String? = nil, key: String? = nil, message: String) {
        self.kind = kind
        self.cacheName = cacheName
        self.key = key
        self.message = message
    }
}
