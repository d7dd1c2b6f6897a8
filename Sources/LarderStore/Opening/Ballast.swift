/// A file that holds blocks of the disk, as many as the log needs to take removals and to be copied.
///
/// On a full disk it is deleted, and created again when there is room.
struct Ballast: Sendable {
    /// The pages after which a log is copied.
    static let pages = 1000
    static let size = Int64(pages) * 4096

    let path: String

    /// A Boolean value that indicates whether the file is there, and whole.
    var isThere: Bool { do { return try FileSystem.status(path)?.size ?? 0 >= Self.size } catch { return true } }

    /// Creates the file, if there is room for it.
    func make() {
        if isThere { return }
        release()
        FileSystem.reserve(path, size: Self.size)
    }

    func release() { do { try FileSystem.delete(path) } catch {} }
}
