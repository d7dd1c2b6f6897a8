internal import Foundation

/// Where the system wants a program's caches.
package enum CachesFolder {
    package static func path() throws(CacheError) -> String {
        #if os(Linux)
        return try path(environment: ProcessInfo.processInfo.environment, home: NSHomeDirectory())
        #else
        guard let url = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first else { throw none }
        return url.path
        #endif
    }

    /// By the XDG rules: a variable that is unset, empty or relative counts for nothing.
    package static func path(environment: [String: String], home: String) throws(CacheError) -> String {
        if let folder = environment["XDG_CACHE_HOME"], folder.hasPrefix("/") { return folder }
        if let home = environment["HOME"], home.hasPrefix("/") { return home + "/.cache" }
        guard home.hasPrefix("/"), home != "/" else { throw none }
        return home + "/.cache"
    }

    private static var none: CacheError {
        CacheError(
            .storageUnavailable,
            "this user has no caches directory; set XDG_CACHE_HOME, or give the store a path with init(url:)")
    }
}
