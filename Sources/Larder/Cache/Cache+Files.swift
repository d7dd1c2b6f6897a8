public import Foundation
internal import LarderStore

extension Cache where Value == Data {
    /// Writes the bytes of a file as the value of a key, of which never more than a megabyte is in memory.
    ///
    /// The file is cloned where the file system does that, which takes no room, and else copied. Memory keeps no copy of the
    /// value; `fileURL(forKey:)` gives it back as a file. Symbolic links are followed. A value that is not larger than
    /// ``CacheOptions/inlineLimit``, a store in memory and a codec with transforms take the bytes into memory.
    ///
    /// - Parameters:
    ///   - file: A regular file, which nothing changes in the meantime.
    ///   - key: The key.
    ///   - maxAge: The maximum age of this entry, in place of the cache's.
    ///   - extendedData: Bytes to store with the value.
    ///   - tags: The tags by which `removeAll(tagged:)` and `entries(tagged:)` find the entry.
    /// - Throws: `.storageUnavailable` if the file is none, cannot be read, or changes while it is copied. Else a
    ///   write error, see ``CacheError``.
    public func setValue(
        contentsOf file: URL, forKey key: Key, maxAge: MaxAge? = nil, extendedData: Data? = nil, tags: Set<String> = []
    ) throws(CacheError) {
        try requireUnshared("set the value")
        let stored = try stored(key)
        let attributes = EntryAttributes(maxAge: maxAge, extendedData: extendedData, tags: tags)
        let subject = "key \(stored.name) of cache \"\(name)\""
        // Refused before a large file is copied.
        _ = try attributes.stored(at: rows.now(), subject)
        guard file.isFileURL else {
            throw CacheError(
                .storageUnavailable, "\(file) is no file, and cannot be the value of \(subject). Download it first.")
        }
        let copied = try throwing("copy a file", stored) { () throws(StoreError) in
            try rows.copy(
                file.path, for: stored, label: label(stored),
                isPlain: codec.identifier == ValueCodec<Data>.data.identifier)
        }
        guard let file = copied.file else { return try run(write(copied.bytes, forKey: key, attributes)) }
        let now = rows.now()
        let (meta, end) = try attributes.stored(at: now, subject)
        let (copies, hash) = (shared.copies, copies.seed.hash(key))
        let entry = EntryWrite(key: stored, file: file, writtenAt: now, expiresAt: end, meta: meta)
        try rows.put([entry], "set the value") { copies.wroteToDisk(key, hash: hash, $0, &$1) }
    }

    /// Writes the bytes of a file as the value of a key.
    ///
    /// - Parameters:
    ///   - file: A regular file, which nothing changes in the meantime.
    ///   - key: The key.
    ///   - maxAge: The maximum age of this entry, in place of the cache's.
    ///   - extendedData: Bytes to store with the value.
    ///   - tags: The tags by which `removeAll(tagged:)` and `entries(tagged:)` find the entry.
    /// - Throws: `.storageUnavailable` if the file is none, cannot be read, or changes while it is copied. Else a
    ///   write error, see ``CacheError``.
    public func setValue(
        contentsOf file: URL, forKey key: Key, maxAge: MaxAge? = nil, extendedData: Data? = nil, tags: Set<String> = []
    ) async throws(CacheError) {
        try await offload { () throws(CacheError) in
            try self.setValue(
                contentsOf: file, forKey: key, maxAge: maxAge, extendedData: extendedData, tags: tags)
        }
    }
}
