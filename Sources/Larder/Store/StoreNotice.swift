/// Something a store has to tell its managers.
package enum StoreNotice: Sendable {
    /// The files were moved to `path`, for the reason given, and a new store was made.
    case setAside(path: String, reason: String)

    /// Another file, or none, stands where ours stood, and the store was opened again.
    case reopened(path: String)

    /// Work in the background failed; nothing is lost, and it is tried again.
    case backgroundFailure(CacheError)
}
