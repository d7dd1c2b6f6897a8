/// How urgently memory is needed.
public enum MemoryPressure: Sendable, Hashable {
    /// Memory gets scarce: caches give back a half.
    case warning
    /// Memory is all but gone: caches give back everything.
    case critical
}
