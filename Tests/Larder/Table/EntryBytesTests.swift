import Foundation
import Larder
import Testing

/// What an entry counts, by the shape of its key and its value.
struct EntryBytesTests {
    private struct Numbers: Hashable {
        let a: Int
        let b: Double
    }

    private struct Texts: Hashable {
        let a, b, c: String
    }

    @Test func `a key that fits inline has nothing outside of the table`() {
        #expect(EntryBytes.ofKey(7, encodedCount: 8) == 0)
        #expect(EntryBytes.ofKey(UUID(), encodedCount: 17) == 0)
        #expect(EntryBytes.ofKey(Numbers(a: 1, b: 2), encodedCount: 20) == 0)
        #expect(EntryBytes.ofKey("fifteen bytes..", encodedCount: 15) == 0)
        #expect(EntryBytes.ofKey(Data(count: 14), encodedCount: 15) == 0)
    }

    @Test func `a key that does not fit counts its bytes and its object`() {
        #expect(EntryBytes.ofKey("sixteen bytes...", encodedCount: 16) == 16 + 48)
        #expect(EntryBytes.ofKey(String(repeating: "k", count: 1000), encodedCount: 1000) == 1048)
        #expect(EntryBytes.ofKey(Data(count: 100), encodedCount: 102) == 100 + 112)
        // Of a key of another type only the encoding is known; three texts of 10 bytes are one object and one more.
        #expect(EntryBytes.ofKey(Texts(a: "", b: "", c: ""), encodedCount: 30) == 30 + 48 + 32)
    }

    @Test func `a value without references is inline as a whole`() {
        #expect(EntryBytes.ofValue(Bool.self, encodedCount: 1) == 0)
        #expect(EntryBytes.ofValue(Numbers.self, encodedCount: 30) == 0)
        #expect(EntryBytes.ofValue(Double?.self, encodedCount: 9) == 0)
    }

    @Test func `the encoding stands for a value with references`() {
        #expect(EntryBytes.ofValue(Data.self, encodedCount: 0) == 0)
        #expect(EntryBytes.ofValue(Data.self, encodedCount: 100_000) == 100_112)
        #expect(EntryBytes.ofValue(String.self, encodedCount: 16) == 0)
        #expect(EntryBytes.ofValue(String.self, encodedCount: 303) == 351)
        #expect(EntryBytes.ofValue([Int].self, encodedCount: 200) == 248)
        #expect(EntryBytes.ofValue(Texts.self, encodedCount: 200) == 200 + 48 + 2 * 32)
    }

    @Test
    func
        `the table takes a node, 9 bytes of the index, 6 of the log, a tag where there is one, and the arrays next to it`()
    {
        #expect(EntryBytes.inTable(nodeStride: 24, hasTags: false, sides: 0) == 39)
        #expect(EntryBytes.inTable(nodeStride: 64, hasTags: true, sides: 12) == 95)
    }
}
