public import Foundation

/// An entry that is to be written.
///
/// Creating it hashes the payload, so create it before the write waits for its turn.
@usableFromInline
package struct EntryWrite: Sendable {
    package let key: StoredKey
    /// The payload; empty once it is in a file.
    private(set) var payload: Data
    let payloadSize: Int
    let payloadChecksum: Int64
    private(set) var file: String?
    private let label: String?
    package let writtenAt: Int64
    package let expiresAt: Int64?
    /// The attributes.
    ///
    /// If `keepsPin` is true, the entry keeps the pin of the row that it replaces.
    package let meta: RowMeta
    package let keepsPin: Bool

    /// - Parameters:
    ///   - expiresAt: The end of the entry alone; nil if the rule of the cache holds, `.max` for no end.
    ///   - keepsPin: A Boolean value that indicates whether the pin of an older entry stays, whatever `meta` says.
    ///   - label: The readable part of the value file's name; nil for one that the key gives.
    @usableFromInline
    package init(
        key: StoredKey, payload: Data, writtenAt: Int64, expiresAt: Int64? = nil, meta: RowMeta = RowMeta(),
        keepsPin: Bool = false, label: String? = nil
    ) {
        (self.key, self.payload, payloadChecksum) = (key, payload, RowChecksum.ofPayload(payload))
        (self.writtenAt, self.expiresAt, self.meta, self.keepsPin) = (writtenAt, expiresAt, meta, keepsPin)
        (self.label, payloadSize) = (label, payload.count)
    }

    /// An entry whose payload is a file already.
    package init(
        key: StoredKey, file: CopiedFile, writtenAt: Int64, expiresAt: Int64?, meta: RowMeta
    ) {
        (self.key, payload, payloadSize, payloadChecksum) = (key, Data(), Int(file.size), file.checksum)
        (self.file, label, keepsPin) = (file.name, nil, true)
        (self.writtenAt, self.expiresAt, self.meta) = (writtenAt, expiresAt, meta)
    }

    /// The bytes that count against limits: payload and extended data.
    package var size: Int64 { Int64(payloadSize + (meta.extendedData?.count ?? 0)) }

    mutating func moveToFile(in files: ValueFiles) throws(StoreError) {
        let name = FileName.new(of: key, label)
        try files.write(payload, as: name)
        (file, payload) = (name, Data())
    }
}
