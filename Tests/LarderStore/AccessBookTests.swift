import LarderStore
import Testing

/// Which accesses are stored, and which are not worth a look-up.
struct AccessBookTests {
    private let book = AccessBook()

    private func access(_ moment: Int64, revision: Int64 = 1) -> Access {
        Access(id: 7, revision: revision, moment: moment, grain: 1000)
    }

    @Test func `an access within the grain of one that was stored is not stored, but counts for the order of use`() {
        _ = book.note(access(5000))
        #expect(book.take().map(\.moment) == [5000])
        book.noteStored(access(5000))
        for moment in [5001, 5999] { _ = book.note(access(Int64(moment))) }
        #expect(book.take().isEmpty)
        #expect(book.lastAccess(7, 1) == 5999)
        _ = book.note(access(6000))
        #expect(book.take().map(\.moment) == [6000])
    }

    @Test func `an access that could not be stored is given again`() {
        _ = book.note(access(5000))
        let taken = book.take()
        #expect(book.take().isEmpty)
        book.putBack(taken)
        #expect(book.take().map(\.moment) == [5000])
    }

    @Test func `what was stored of an older row says nothing of the new one`() {
        _ = book.note(access(5000))
        let taken = book.take()
        _ = book.note(access(5001, revision: 2))
        for access in taken { book.noteStored(access) }
        #expect(book.take().map(\.revision) == [2])
    }
}
