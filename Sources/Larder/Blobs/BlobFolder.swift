internal import Synchronization

/// The folder of payloads that are too large for a row: a file each, in folders by the first two digits of its name.
///
/// It knows nothing of rows. Whoever has them keeps the order that makes a crash leave old or new: ``write(_:label:)``,
/// then the commit of the row that names the file, and only then ``giveUp(_:)`` for the one that the row named before.
/// Nobody changes a file while a row names it; one that was given up leaves its name first and is overwritten under
/// another one. Several processes, and several objects in one, may have the same folder.
///
/// Nothing is followed through a symbolic link from the folder on, and the folder must not be one.
///
/// Safety: A checksum reads a buffer inside the call that got it, and keeps nothing of it.
package final class BlobFolder: Sendable {
    package let path: String

    /// Whether a file is on the disk, with the folders that lead to it, before ``write(_:label:)`` returns.
    let syncs: Bool

    let pool = BlobPool()
    let unsynced = BlobSyncList()

    /// Held over ``sync()``: who finds nothing left to sync must not go on while another one is at it.
    let syncing = Mutex(())

    /// The folder as last opened, so that a read opens one folder less.
    ///
    /// Not held while the file system works.
    private let lastOpened = Mutex<FileSystem.Folder?>(nil)

    /// Makes nothing on the disk; the first write does.
    package init(path: String, syncs: Bool) {
        self.path = path
        self.syncs = syncs
    }

    /// Whether there is anything at the path; true if one may not look.
    package var exists: Bool {
        do throws(SystemError) {
            return try FileSystem.status(path) != nil
        } catch {
            return true
        }
    }

    /// The bytes of the volume: all of them, and those that may still be written.
    package func space() throws(SystemError) -> (total: Int64, free: Int64) {
        // The folder itself may not be there yet; the one that it will stand in is.
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex
        return try FileSystem.space(slash == path.startIndex ? "/" : String(path[..<slash]))
    }

    /// The folder that stands at the path now; nil if none does.
    func opened() throws(SystemError) -> FileSystem.Folder? {
        let folder = try FileSystem.Folder.at(path)
        lastOpened.withLock { $0 = folder }
        return folder
    }

    /// The payload that a row says is in the file `name`.
    ///
    /// It is copied once, into memory of its own. Throws what may be gone the next time: no permission, too many open
    /// files, a device that fails, too little memory.
    package func read(_ name: String, size: Int64, checksum: Int64) throws(SystemError) -> BlobReading {
        guard let name = BlobName(name) else { return .damaged }
        if let folder = lastOpened.withLock({ $0 }) {
            let reading = try read(name, size, checksum, in: folder)
            // The folder may have been moved away, and another one made.
            if case .missing = reading {} else { return reading }
        }
        guard let folder = try opened() else { return .missing }
        return try read(name, size, checksum, in: folder)
    }

    private func read(
        _ name: BlobName, _ size: Int64, _ checksum: Int64, in folder: FileSystem.Folder
    ) throws(SystemError) -> BlobReading {
        do throws(SystemError) {
            guard let file = try folder.file(at: name.text, .reading) else { return .missing }
            let status = try file.status()
            guard status.kind == .file, status.size == size else { return .damaged }
            guard let count = Int(exactly: size), let buffer = BlobBuffer(count: count) else {
                throw .outOfMemory(path + "/" + name.text)
            }
            guard try file.read(into: buffer.bytes) == count,
                Self.checksum(UnsafeRawBufferPointer(buffer.bytes)) == checksum
            else { return .damaged }
            return .bytes(buffer.data())
        } catch {
            guard error.isAboutAnObstacle else { throw error }
            return .damaged
        }
    }

    static func checksum(_ bytes: UnsafeRawBufferPointer) -> Int64 {
        Int64(bitPattern: Checksum.xxh3(bytes))
    }

    /// Where the file `name` is; nil if that is no name of ours.
    ///
    /// Its bytes may change at any time unless ``handOut(_:)`` was asked.
    package func path(of name: String) -> String? {
        BlobName(name).map { path + "/" + $0.text }
    }

    /// Where the file `name` is, for somebody outside; nil if it is not there.
    ///
    /// The file becomes read-only, by which every process knows later that it has to be deleted and not recycled: who
    /// has it open goes on reading the old bytes.
    package func handOut(_ name: String) throws(SystemError) -> String? {
        guard let name = BlobName(name), let folder = try opened() else { return nil }
        do throws(SystemError) {
            guard let place = try folder.folder(name.folder), let file = try place.file(name.file, .reading)
            else { return nil }
            let status = try file.status()
            guard status.kind == .file else { return nil }
            try file.makeReadOnly()
            // Given up in between, it may be recycled all the same.
            guard try place.status(name.file)?.identity == status.identity else { return nil }
            return path + "/" + name.text
        } catch {
            guard error.isAboutAnObstacle else { throw error }
            return nil
        }
    }

    /// How many files wait in the pool, and how many bytes they have.
    package var poolFigures: (count: Int, bytes: Int64, taken: Int) {
        let figures = pool.figures
        return (figures.count, figures.bytes, figures.taken)
    }

    /// Deletes what waits to be recycled, which maintenance and closing do.
    package func emptyPool() throws(SystemError) { try pool.empty() }
}
