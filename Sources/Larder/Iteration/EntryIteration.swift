public import LarderStore

extension Cache {
    /// Returns an iteration over rows that may be served.
    ///
    /// Which ones have expired is decided once for each page.
    @usableFromInline
    func rowIteration(_ pages: RowPages = RowPages()) -> PagedIteration<StoredRow> {
        PagedIteration(pages, report: reportEndedIteration) { [self] pages throws(CacheError) in
            let page = try throwing("read entries") { () throws(StoreError) in try pages.nextRows(of: rows) }
            let now = rows.store.time.now()
            return page.contains { $0.header.end < now } ? page.filter { $0.header.end >= now } : page
        }
    }

    /// Returns the key and the value of a row; nil if one of them does not decode, which is reported.
    @inlinable
    func decoded(_ row: StoredRow) -> (key: Key, value: Value)? {
        guard let key = key(of: row.header), let value = valueOrReported(of: row) else { return nil }
        return (key, value)
    }

    /// Returns the key of a row; nil if it does not decode, which is reported.
    @inlinable
    func key(of header: EntryHeader) -> Key? {
        do throws(CacheError) {
            return try shared.keyCodec.key(header.key, cache: name)
        } catch {
            noteUndecodable(header, error)
            return nil
        }
    }

    /// Returns the value of a row; nil if it does not decode, which is reported.
    @inlinable
    func valueOrReported(of row: StoredRow) -> Value? {
        do throws(CacheError) { return try decode(row) } catch { return nil }
    }

    /// Reports an iteration that ended early, which cannot throw.
    @usableFromInline
    func reportEndedIteration(_ error: CacheError) {
        copies.count { $0.failures += 1 }
        let message = "An iteration over the cache \"\(name)\" ended early. \(error.message)"
        reportUnthrown(error, CacheEvent(.readFailed, cacheName: name, message: message))
    }
}

extension CacheEntry {
    /// The entry of a row.
    init(_ key: Key, _ value: Value, _ header: EntryHeader, isExpired: Bool = false) {
        self.init(
            key: key, value: value, extendedData: header.meta.extendedData, metadata: EntryMetadata(header),
            isExpired: isExpired)
    }
}
