internal import LarderStore

extension CacheError {
    /// Creates the error of a call from that of the store.
    ///
    /// - Parameter action: The action of the call ("read the value").
    init(_ error: StoreError, _ action: String, cache: String? = nil, key: StoredKey? = nil) {
        let subject = key.map { " of key \"\($0.name)\"" } ?? ""
        let place = cache.map { "The cache \"\($0)\"" } ?? "The store"
        self.init(
            Code(error.code), "\(place) could not \(action)\(subject). \(error.message)", underlying: error,
            sqliteCode: error.sqliteCode)
    }
}

extension CacheError.Code {
    fileprivate init(_ code: StoreError.Code) {
        self =
            switch code {
            case .storageUnavailable: .storageUnavailable
            case .storageFull: .storageFull
            case .busy: .busy
            case .corrupt: .corrupt
            case .foreignFile: .foreignFile
            case .newerSchema: .newerSchema
            case .superseded: .superseded
            case .reentrant: .reentrant
            case .closed: .closed
            case .suspended: .suspended
            case .tooLarge: .tooLarge
            case .readOnly: .readOnly
            case .otherKeys: .typeMismatch
            }
    }
}
