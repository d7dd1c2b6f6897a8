public import Foundation

/// A row with its payload.
@usableFromInline
package struct StoredRow: Sendable {
    @usableFromInline package internal(set) var header: EntryHeader
    @usableFromInline package let payload: Data
    /// What the hash of the file has to be; nil if the payload was in the row.
    var fileChecksum: Int64?
    /// A Boolean value that indicates whether a payload in the row fits the checksum.
    var isSound = true
}
