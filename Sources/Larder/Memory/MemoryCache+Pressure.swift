internal import Synchronization

extension MemoryCache: PressureResponder {
    /// Gives memory back now: `.warning` removes the less recently used half, by count, by cost and by bytes,
    /// `.critical` all.
    ///
    /// A cache made with `clearsOnMemoryPressure` does this by itself when the system asks for it: by the pressure
    /// source on Apple's systems, by the kernel's pressure stall triggers on Linux, where they can be opened. On every
    /// system, and for every cache, it can be called by hand. A handler set with ``memoryPressureHandler`` runs first.
    public func handleMemoryPressure(_ level: MemoryPressure) {
        pressureHandler.withLock(\.self)?(level)
        switch level {
        case .warning:
            let (count, cost, bytes) = state.withLock { ($0.table.count, $0.totalCost, $0.totalBytes) }
            trim(toCount: count / 2)
            trim { $0.totalCost > cost / 2 || $0.totalBytes > bytes / 2 }
        case .critical:
            removeAll()
        }
    }

    /// Called with the level before the cache gives memory back, on the thread that brings the news, outside any lock.
    public var memoryPressureHandler: (@Sendable (MemoryPressure) -> Void)? {
        get { pressureHandler.withLock(\.self) }
        set {
            let old = pressureHandler.withLock { handler in
                let old = handler
                handler = newValue
                return old
            }
            _ = consume old
        }
    }
}
