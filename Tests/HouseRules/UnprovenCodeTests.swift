import Foundation
import Testing

/// Counts the code whose safety the compiler does not prove.
///
/// The numbers are upper bounds: a new place fails the test, and who removes one lowers the number.
struct UnprovenCodeTests {
    private let sources: [SourceTree.File]

    init() throws {
        sources = try SourceTree.files(below: "Sources", "Migrations")
    }

    /// The number of lines of code that match, by file.
    private func lines(_ pattern: String) throws -> [String: Int] {
        let places = SourceTree.places(sources, try Regex(pattern).wordBoundaryKind(.simple))
        return places.reduce(into: [:]) { $0[String($1.prefix { $0 != ":" }), default: 0] += 1 }
    }

    private func expect(
        _ pattern: String, atMost bounds: [String: Int], sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let found = try lines(pattern)
        for (file, count) in found {
            #expect(count <= bounds[file] ?? 0, "\(pattern) in \(file)", sourceLocation: sourceLocation)
        }
        // A bound on a place that is gone would let a new one in.
        for file in bounds.keys { #expect(found[file] != nil, "\(file)", sourceLocation: sourceLocation) }
    }

    @Test func `claims of Sendable are counted`() throws {
        try expect(
            "@unchecked Sendable",
            atMost: [
                "Sources/Larder/Pressure/BackgroundWatcher.swift": 1, "Sources/Larder/Table/LRUTable.swift": 1,
                "Sources/Larder/Pressure/PressureSource.swift": 1,
                "Sources/LarderCBOR/Stack.swift": 1, "Sources/LarderLocks/Mutex+ThreadSanitizer.swift": 1,
                "Sources/LarderLocks/Mutex+Darwin.swift": 1, "Sources/LarderLocks/Atomic+Darwin.swift": 1,
                "Sources/LarderStore/Writing/Request.swift": 1, "Sources/LarderStore/Store/OwnedLock.swift": 1,
                "Sources/LarderRedisTLS/TLSCipher.swift": 1,
            ])
        try expect(
            #"nonisolated\(unsafe\)"#,
            atMost: ["Sources/LarderLocks/LockCount.swift": 1])
    }

    @Test func `casts that nothing checks are counted`() throws {
        // A function of the C library, found by its name.
        try expect(
            #"\bunsafeBitCast\b"#,
            atMost: ["Sources/LarderCBOR/Stack.swift": 1, "Sources/Larder/Table/TableMemory.swift": 1])
        try expect(
            #"\bunsafeDowncast\b|\bunsafelyUnwrapped\b"#,
            atMost: ["Sources/LarderCBOR/EncodingContainers.swift": 1, "Sources/LarderCBOR/Reader.swift": 1])
        // After a comparison of types, where it cannot fail and costs less than `as?`.
        try expect(#"\bas!"#, atMost: ["Sources/LarderCBOR/Known.swift": 5])
    }

    @Test func `the private layout of the standard library is used nowhere, and references are counted`() throws {
        try expect(#"\bUnmanaged\b|@exclusivity|_isBitwiseTakable|\bunowned\(unsafe\)"#, atMost: [:])
        try expect(
            #"\b_isPOD\b"#,
            atMost: [
                "Sources/Larder/Table/EntryBytes.swift": 2, "Sources/Larder/Table/LRUTable.swift": 2,
            ])
    }

    @Test func `force unwraps are counted`() throws {
        // Each follows a test of the same value, in the same function or in the one that calls. Nine are forced casts.
        let found = try lines(#"[\])\w]!([.,)\]? ]|$)"#)
        #expect(found.values.reduce(0, +) <= 50, "\(found)")
    }

    @Test func `each file that names an unsafe pointer says why it is safe`() throws {
        for file in try lines(#"\bUnsafe(Mutable)?(Raw)?(Buffer)?Pointer\b"#).keys.sorted() {
            let text = try #require(sources.first { $0.path == file }).text
            #expect(text.contains("// Safety: "), "\(file)")
        }
    }
}
