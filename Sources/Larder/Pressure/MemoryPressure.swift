/// The urgency of a request to release memory.
public enum MemoryPressure: Sendable, Hashable {
    /// Memory is getting scarce.
    ///
    /// Caches release half of their entries in memory, unless they are told otherwise.
    case warning
    /// Memory is almost exhausted.
    ///
    /// Caches release all entries in memory.
    case critical
}
