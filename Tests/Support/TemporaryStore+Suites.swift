package import Foundation
package import Larder

extension TemporaryStore {
    /// - Parameter suite: The file of the suite.
    package convenience init(of suite: String) throws { self.init(ManualClock(), try TemporaryFolder(suite)) }

    /// A store, and a manager of it.
    package static func opened(_ suite: String = #fileID) throws -> (TemporaryStore, CacheManager) {
        let store = try TemporaryStore(of: suite)
        return (store, try store.manager())
    }

    /// The path of the store without links, as messages name it and SQLite opens it.
    package var realURL: URL { folder.real("store.sqlite") }

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
