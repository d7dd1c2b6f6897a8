public import Foundation
internal import LarderStore

/// The bytes of the process that an entry in memory takes.
///
/// Only this type knows these numbers. An entry takes its share of the table, and the bytes that its key and its value
/// have outside of the table. The constants are those of Swift's objects and of the allocator on 64-bit systems. They
/// are measured by the benchmark `memory-bound`.
@usableFromInline
package enum EntryBytes {
    /// An allocated object: its header, the header of the allocator, and half a step of the allocator's sizes.
    @inlinable static var ofObject: Int { 48 }

    /// The objects of a `Data` whose bytes are not inline: the storage and its buffer.
    @inlinable static var ofStorage: Int { 112 }

    /// The bytes of an entry in each array next to a table: the costs, the units, the ends of ages.
    @inlinable static var ofCost: Int { MemoryLayout<Int>.stride }
    @inlinable static var ofUnits: Int { MemoryLayout<UInt32>.stride }
    @inlinable static var ofEnd: Int { MemoryLayout<Int64>.stride }
    @usableFromInline static var ofHint: Int { MemoryLayout<RefreshHint>.stride }
    static var ofVersion: Int { MemoryLayout<RowVersion>.stride }

    /// The bytes that a full table takes for each entry, without what keys and values have outside of it.
    ///
    /// - Parameters:
    ///   - stride: The bytes of a node, which holds the key and the value inline.
    ///   - hasTags: A Boolean value that indicates whether the table keeps the tag of each node.
    ///   - hasTimes: A Boolean value that indicates whether the table keeps when each entry was accessed.
    ///   - sides: The bytes of each entry in the arrays next to the table.
    @usableFromInline
    package static func inTable(nodeStride stride: Int, hasTags: Bool, hasTimes: Bool = false, sides: Int) -> Int {
        // Chunks of 64 bytes, 2 for 15 nodes, and 1.5 records of the log with their share of a block.
        let ofTimes = hasTimes ? MemoryLayout<UInt32>.stride * 3 / 2 : 0
        return stride + 9 + 6 + ofTimes + (hasTags ? MemoryLayout<UInt32>.stride : 0) + sides
    }

    /// The bytes that a key has outside of the table.
    ///
    /// - Parameter encodedCount: The size of the encoding, which stands for keys of other types than `String` and
    ///   `Data`.
    @inlinable @inline(__always)
    package static func ofKey<Key: Hashable>(_ key: Key, encodedCount: @autoclosure () -> Int) -> Int {
        if _isPOD(Key.self) { return 0 }
        if Key.self == String.self, let text = key as? String { return ofText(text.utf8.count) }
        if Key.self == Data.self, let bytes = key as? Data { return ofData(bytes.count) }
        return ofObjects(inlineSize: MemoryLayout<Key>.size, encodedCount: encodedCount())
    }

    /// The bytes that a value has outside of the table, by the size of its encoding.
    ///
    /// The encoding stands for the value, because a value does not report its size. A value without references is
    /// inline as a whole.
    @inlinable @inline(__always)
    package static func ofValue<Value>(_ type: Value.Type, encodedCount: Int) -> Int {
        if _isPOD(Value.self) { return 0 }
        // In CBOR a text of up to 15 bytes has one byte of head.
        if Value.self == String.self { return encodedCount <= 16 ? 0 : encodedCount + ofObject }
        if Value.self == Data.self { return ofData(encodedCount) }
        return ofObjects(inlineSize: MemoryLayout<Value>.size, encodedCount: encodedCount)
    }

    /// The bytes of a text outside of the place where it is kept.
    @inlinable
    package static func ofText(_ count: Int) -> Int { count <= 15 ? 0 : count + ofObject }

    /// The bytes of a `Data` outside of the place where it is kept.
    @inlinable
    package static func ofData(_ count: Int) -> Int { count <= 14 ? 0 : count + ofStorage }

    /// The bytes of a value of any other type: its encoding, an object, and two thirds of one for each further text,
    /// array or `Data` that fits into its inline size and into its encoding.
    @inlinable
    package static func ofObjects(inlineSize: Int, encodedCount: Int) -> Int {
        let parts = min(max(1, inlineSize / 16) - 1, encodedCount / 16)
        return encodedCount + ofObject + parts * 32
    }

    /// Bytes in steps of 16, which is how the allocator gives them; 64 GiB at most.
    @inlinable @inline(__always)
    static func units(_ bytes: Int) -> UInt32 {
        bytes == 0 ? 0 : UInt32(clamping: ((max(bytes, 1) - 1) >> 4) + 1)
    }
}
