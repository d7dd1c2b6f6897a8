/// What a row keeps of a payload that lies in a file.
package struct BlobReference: Hashable, Sendable {
    /// The file, relative to the folder: two hex digits, a slash, the name.
    package let name: String

    /// The length in bytes.
    package let size: Int64

    /// XXH3 of the bytes, 64 bits with seed 0, as the signed integer that a row can hold.
    package let checksum: Int64

    package init(name: String, size: Int64, checksum: Int64) {
        self.name = name
        self.size = size
        self.checksum = checksum
    }
}
