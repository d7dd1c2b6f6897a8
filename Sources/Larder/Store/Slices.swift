/// Does something with all items, a slice at a time; a slice that finds the volume full is tried again as smaller ones.
///
/// On a full volume no more can be written at a time than the log's file holds already, so what removes many rows has to
/// go in steps of that size. What was done before a failure stays done.
package func inSlices<Item>(
    _ items: [Item], of count: Int, _ body: ([Item]) throws(CacheError) -> Void
) throws(CacheError) {
    var (start, size) = (0, max(count, 1))
    while start < items.count {
        let end = min(start + size, items.count)
        do throws(CacheError) {
            try body(Array(items[start..<end]))
            start = end
        } catch {
            size = try smaller(end - start, after: error)
        }
    }
}

/// How much to try next where so much failed; throws the error where less would not help.
package func smaller(_ count: Int, after error: CacheError) throws(CacheError) -> Int {
    guard error.code == .storageFull, count > 1 else { throw error }
    return max(count / 4, 1)
}
