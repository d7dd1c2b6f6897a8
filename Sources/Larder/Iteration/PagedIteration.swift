internal import LarderStore

/// An iteration that reads page by page, and holds nothing of the store between pages.
@usableFromInline
struct PagedIteration<Element: Sendable>: Sendable {
    private let read: @Sendable (inout RowPages) throws(CacheError) -> [Element]
    private let report: @Sendable (CacheError) -> Void
    /// Nil at the end, and after a failure.
    private var pages: RowPages?
    @usableFromInline var page: [Element] = []
    @usableFromInline var position = 0

    /// - Parameters:
    ///   - report: Called with the failure that ends the iteration, unless a task gets it.
    ///   - read: Returns the elements of the next page.
    @usableFromInline
    init(
        _ pages: RowPages, report: @escaping @Sendable (CacheError) -> Void,
        read: @escaping @Sendable (inout RowPages) throws(CacheError) -> [Element]
    ) {
        (self.pages, self.report, self.read) = (pages, report, read)
    }

    /// Returns the next element, or nil at the end and after a failure, which is reported.
    @inlinable
    mutating func next() -> Element? {
        while position == page.count { if !turnPage() { return nil } }
        position += 1
        return page[position - 1]
    }

    /// Reads the next page, and returns false at the end.
    @usableFromInline
    mutating func turnPage() -> Bool {
        do throws(CacheError) {
            try readPage()
        } catch {
            pages = nil
            report(error)
        }
        return pages != nil || !page.isEmpty
    }

    private mutating func readPage() throws(CacheError) {
        (page, position) = ([], 0)
        guard var rest = pages else { return }
        page = try read(&rest)
        pages = rest.isDone ? nil : rest
    }

    /// Returns the next element for a task, or nil at the end.
    mutating func next<Key, Value>(of cache: Cache<Key, Value>) async throws -> Element? {
        while true {
            try Task.checkCancellation()
            if position < page.count {
                position += 1
                return page[position - 1]
            }
            if pages == nil { return nil }
            let copy = self
            do throws(CacheError) {
                self = try await cache.reading { () throws(CacheError) in
                    var next = copy
                    try next.readPage()
                    return next
                }
            } catch {
                pages = nil
                throw error
            }
        }
    }
}
