package import Larder

extension CacheManager {
    /// The events without those of memory pressure, which the system can report at any moment.
    package var steadyEvents: AsyncFilterSequence<AsyncStream<CacheEvent>> {
        events.filter {
            if case .memoryPressure = $0.kind { false } else { true }
        }
    }
}
