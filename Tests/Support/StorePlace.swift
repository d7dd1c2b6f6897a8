package import Foundation
package import Larder

/// Where a store of a test's own is, in a time of its own.
package struct StorePlace: Sendable {
    package let folder: TemporaryFolder
    package let time = ManualTime()

    package init(_ suite: String = #fileID) throws { folder = try TemporaryFolder(suite) }

    /// A place, and a manager of the store that is there.
    package static func opened(_ suite: String = #fileID) throws -> (StorePlace, CacheManager) {
        let place = try StorePlace(suite)
        return (place, try place.manager())
    }

    package var url: URL { folder("store.sqlite") }
    /// The path of the store without links, as messages name it and SQLite opens it.
    package var realURL: URL { folder.real("store.sqlite") }

    /// Opens the store in this time.
    package func manager(
        _ change: (inout CacheManager.Configuration) -> Void = { _ in }
    ) throws(CacheError) -> CacheManager {
        var configuration = time.configuration
        change(&configuration)
        return try CacheManager(url: url, configuration: configuration)
    }

    /// The files that hold values, and, if asked for, those that wait to be used again.
    package func spilledFiles(withPools: Bool = false) throws -> [String] {
        let found = try folder.contents().filter { $0.key.hasPrefix("store.files/") && $0.value != nil }.map(\.key)
        if withPools { return found }
        let named = try StoreProbe(manager { $0.access = .readOnly }).namedFiles()
        return found.filter { named[String($0.dropFirst("store.files/".count))] != nil }
    }
}

extension CacheOptions {
    /// The same, with every access written down, and without the clearing that other tests' pressure on memory would cause,
    /// which would change the numbers.
    package var steady: CacheOptions {
        var options = self
        options.clearsOnMemoryPressure = false
        options.accessGrain = .zero
        return options
    }
}
