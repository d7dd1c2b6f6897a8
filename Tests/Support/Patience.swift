package import Larder

extension CacheManager.Configuration {
    /// For tests in which several processes or many threads write: whoever is slow is waited for.
    package static var patient: Self {
        var configuration = Self()
        configuration.busyTimeout = .seconds(120)
        return configuration
    }
}
