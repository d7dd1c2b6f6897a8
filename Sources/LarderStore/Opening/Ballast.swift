/// A file that holds blocks of the disk, as many as the log needs to take removals and to be copied.
///
/// It grows with the database. On a full disk it is deleted, and created again when there is room.
struct Ballast: Sendable {
    /// The pages after which a log is copied.
    static let pages = 1000
    static let maxSize = Int64(pages) * 4096

    let path: String

    /// The size for a database of so many bytes, with those in the log.
    ///
    /// Its new pages may all have to be copied into the main file, and a removal changes each page at most once.
    static func size(for database: Int64) -> Int64 { min(database + 8192, maxSize) }

    /// The size of the file; 0 if there is none.
    var size: Int64 { do { return try FileSystem.status(path)?.size ?? 0 } catch { return 0 } }

    /// Makes the file so long, if there is room for it.
    func grow(to size: Int64) { FileSystem.reserve(path, size: size) }

    func release() { do { try FileSystem.delete(path) } catch {} }
}
