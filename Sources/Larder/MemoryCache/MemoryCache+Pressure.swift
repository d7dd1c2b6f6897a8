internal import LarderLocks

/// What a memory cache removes when memory gets scarce, at a warning.
public enum PressureResponse: Sendable, Hashable {
    /// The less recently used half, by count, by cost and by bytes.
    case half
    /// All entries.
    case all
    /// Nothing: the cache waits until memory is almost exhausted.
    case none
}

extension MemoryCache: PressureResponder {
    /// Releases memory now: `.warning` removes what ``pressureResponse`` says, `.critical` all.
    ///
    /// A cache created with `clearsOnMemoryPressure` does this automatically when the system asks for it: by the
    /// pressure source on Apple's systems, by the kernel's pressure stall triggers on Linux, if they can be opened.
    /// On every system, and for every cache, you can call it directly. If there is a ``memoryPressureHandler``, it is called
    /// and nothing else is done.
    ///
    /// - Parameter level: The urgency of the request.
    public func handleMemoryPressure(_ level: MemoryPressure) {
        let (handler, response) = state.withLock { ($0.pressureHandler, $0.pressureResponse) }
        if let handler { return handler(level) }
        switch (level, response) {
        case (.critical, _), (.warning, .all): removeAll(.pressure)
        case (.warning, .half):
            let (count, cost, bytes) = state.withLock { ($0.table.count, $0.totalCost, $0.totalBytes) }
            trim(.pressure) { $0.table.count > count / 2 }
            trim(.pressure) { $0.totalCost > cost.half || $0.totalBytes > bytes.half }
        case (.warning, .none): break
        }
    }

    /// What a warning removes.
    public var pressureResponse: PressureResponse {
        get { state.withLock { $0.pressureResponse } }
        set { state.withLock { $0.pressureResponse = newValue } }
    }

    /// A closure that decides what to remove in place of the cache; nil, the default, leaves it to the cache.
    ///
    /// It is called with the level on the reporting thread, outside any lock, and may trim or empty the cache.
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
