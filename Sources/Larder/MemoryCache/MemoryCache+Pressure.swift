internal import LarderLocks

extension MemoryCache: PressureResponder {
    /// Releases memory now: `.warning` removes the less recently used half, by count, by cost and by bytes,
    /// `.critical` all.
    ///
    /// A cache created with `clearsOnMemoryPressure` does this automatically when the system asks for it: by the
    /// pressure source on Apple's systems, by the kernel's pressure stall triggers on Linux, if they can be opened.
    /// On every system, and for every cache, you can call it directly. A handler set with ``memoryPressureHandler``
    /// runs first.
    ///
    /// - Parameter level: The urgency of the request.
    public func handleMemoryPressure(_ level: MemoryPressure) {
        state.withLock { $0.pressureHandler }?(level)
        switch level {
        case .warning:
            let (count, cost, bytes) = state.withLock { ($0.table.count, $0.totalCost, $0.totalBytes) }
            trim(toCount: count / 2)
            trim { $0.totalCost > cost / 2 || $0.totalBytes > bytes / 2 }
        case .critical:
            removeAll()
        }
    }

    /// A closure that is called with the level before the cache releases memory, on the reporting thread, outside any
    /// lock.
    public var memoryPressureHandler: (@Sendable (MemoryPressure) -> Void)? {
        get { state.withLock { $0.pressureHandler } }
        set {
            let old = state.withLock { state in
                defer { state.pressureHandler = newValue }
                return state.pressureHandler
            }
            _ = consume old
        }
    }
}
