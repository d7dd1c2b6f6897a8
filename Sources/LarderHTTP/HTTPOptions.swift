public import Larder

/// The options of an ``HTTPCache``.
public struct HTTPOptions: Sendable {
    /// A Boolean value that indicates whether several users share the cache, as those of a proxy do.
    ///
    /// A shared cache stores nothing that is `private`, prefers `s-maxage`, and keeps responses to requests with `Authorization` only
    /// if they allow it.
    public var isShared: Bool

    /// The fields that say more than `Cache-Control`, the first one first, such as `CDN-Cache-Control` (RFC 9213).
    public var targetedFields: [String]

    /// The share of the time since `Last-Modified` for which a response without a lifetime is fresh; 0 for none.
    public var heuristicShare: Double

    /// The longest time that ``heuristicShare`` gives.
    public var heuristicLimit: Duration

    /// The time after its end for which a response may be served if the origin fails, where the response says nothing of it.
    ///
    /// Nil, the default, serves none. What has to be revalidated is never served so.
    public var staleIfError: Duration?

    /// The greatest number of bytes of a body that is stored.
    public var bodyLimit: Int

    /// The greatest number of bytes of all fields that are stored.
    public var fieldLimit: Int

    /// The greatest number of sets of fields of `Vary` that are known of one URL.
    public var variantLimit: Int

    /// The name of the cache in `Cache-Status`.
    public var name: String

    /// The limits of memory, once for fields with small bodies and once for larger bodies.
    ///
    /// Bodies of more than 4 MB are not in memory: their files are mapped.
    public var memory: MemoryLimits

    /// The greatest number of bytes of all responses on disk, of which half are for bodies of more than 16 KB.
    ///
    /// What other nodes have asked for takes up to 16 MB more.
    public var sizeLimit: Int64?

    /// Returns to which part of the cache a request belongs, such as a user: no other part sees its response.
    public var partition: (@Sendable (HTTPRequest) -> String)?

    /// Creates the options of an HTTP cache; each that is left out has its default.
    ///
    /// - Parameters:
    ///   - isShared: Whether several users share the cache.
    ///   - targetedFields: The fields that say more than `Cache-Control`.
    ///   - heuristicShare: The share of the time since `Last-Modified` for which a response without a lifetime is fresh.
    ///   - heuristicLimit: The longest time that the share gives.
    ///   - staleIfError: The time after its end for which a response may be served if the origin fails; nil for none.
    ///   - bodyLimit: The greatest number of bytes of a body that is stored.
    ///   - fieldLimit: The greatest number of bytes of all fields that are stored.
    ///   - variantLimit: The greatest number of sets of fields of `Vary` of one URL.
    ///   - name: The name of the cache in `Cache-Status`.
    ///   - memory: The limits of memory.
    ///   - sizeLimit: The greatest number of bytes on disk; nil for any.
    ///   - partition: Returns to which part of the cache a request belongs; nil for one part.
    public init(
        isShared: Bool = false, targetedFields: [String] = [], heuristicShare: Double = 0.1,
        heuristicLimit: Duration = .seconds(86_400), staleIfError: Duration? = nil, bodyLimit: Int = 64 << 20,
        fieldLimit: Int = 64 << 10, variantLimit: Int = 8, name: String = "Larder",
        memory: MemoryLimits = MemoryLimits(), sizeLimit: Int64? = 256 << 20,
        partition: (@Sendable (HTTPRequest) -> String)? = nil
    ) {
        (self.isShared, self.targetedFields, self.heuristicShare) = (isShared, targetedFields, heuristicShare)
        (self.heuristicLimit, self.staleIfError, self.bodyLimit) = (heuristicLimit, staleIfError, bodyLimit)
        (self.fieldLimit, self.variantLimit, self.name) = (fieldLimit, variantLimit, name)
        (self.memory, self.sizeLimit, self.partition) = (memory, sizeLimit, partition)
    }
}

/// What an ``HTTPCache`` of this process has done.
public struct HTTPStatistics: Hashable, Sendable {
    /// The responses that were served as they were stored, and were fresh.
    public internal(set) var hits = 0

    /// The responses that were served after their end.
    public internal(set) var stale = 0

    /// The responses that were served because the origin said that they are still good.
    public internal(set) var revalidated = 0

    /// The requests for which there was nothing to serve, and the origin was asked.
    public internal(set) var misses = 0

    /// The requests that waited for the answer of another one.
    public internal(set) var collapsed = 0

    /// The requests that went past the cache: by their method, their fields or their options.
    public internal(set) var passedBy = 0

    /// The responses that were stored.
    public internal(set) var stored = 0

    /// The failures of the store, each of which was a miss or was not stored.
    public internal(set) var failures = 0

    /// The share of requests that were served without a body from the origin; nil before the first.
    public var hitRate: Double? {
        let served = hits + stale + revalidated + collapsed
        return served + misses == 0 ? nil : Double(served) / Double(served + misses)
    }
}
