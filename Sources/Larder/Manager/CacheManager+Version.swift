extension CacheManager {
    /// The release of the library, as the change log names it.
    public static let libraryVersion = "0.1.0-dev"
}
