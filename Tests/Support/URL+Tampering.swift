package import Foundation

/// What a test does to a file behind the back of whoever works on it.
extension URL {
    /// How many bytes the file has.
    package func fileSize() throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        guard let size = attributes[.size] as? Int else { throw CocoaError(.fileReadUnknown) }
        return size
    }

    /// Puts `bytes` in the place of those that the file has from `offset` on.
    package func overwrite(at offset: Int = 0, with bytes: some DataProtocol) throws {
        let handle = try FileHandle(forUpdating: self)
        try handle.seek(toOffset: UInt64(offset))
        try handle.write(contentsOf: bytes)
        try handle.close()
    }

    /// Damages one page of a database, the first of which is number 1.
    package func overwritePage(_ number: Int) throws {
        try overwrite(at: (number - 1) * 4096, with: Data(repeating: 0x5A, count: 4096))
    }

    /// Damages every page of a database behind its schema, which is all that an opening reads.
    package func overwritePagesBehindSchema() throws {
        let start = 4 * 4096
        try overwrite(at: start, with: Data(repeating: 0x5A, count: try fileSize() - start))
    }

    /// Leaves the first `length` bytes of the file.
    package func cut(to length: Int) throws {
        let handle = try FileHandle(forUpdating: self)
        try handle.truncate(atOffset: UInt64(length))
        try handle.close()
    }

    /// Removes the log of a database, and the log's index.
    package func removeLog() throws {
        for ending in ["-wal", "-shm"] { try FileManager.default.removeItem(atPath: path + ending) }
    }
}
