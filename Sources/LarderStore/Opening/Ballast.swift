/// A file that holds blocks of the disk, as many as the log may need to take removals and to be copied.
///
/// On a full disk it is given up, and made again when there is room.
struct Ballast: Sendable {
    /// The pages of a log, which is copied at the latest when it has so many.
    static let pages = 1000
    static let size = Int64(pages) * 4096

    let path: String

    /// A Boolean value that indicates whether the file is there, and whole.
    var isThere: Bool { do { return try FileSystem.status(path)?.size ?? 0 >= Self.size } catch { return true } }

    /// Makes the file; without room for it there is none.
    func make() {
        if isThere { return }
        giveUp()
        FileSystem.reserve(path, size: Self.size)
    }

    func giveUp() { do { try FileSystem.delete(path) } catch {} }
}
