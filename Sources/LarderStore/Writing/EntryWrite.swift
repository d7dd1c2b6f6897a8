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

    /// The bytes that count against limits: payload and extended data.
    var size: Int64 { Int64(payloadSize + (meta.extendedData?.count ?? 0)) }

    mutating func moveToFile(in files: ValueFiles) throws(StoreError) {
        let keyLabel =
            switch key {
            case .text(let text): String(text.unicodeScalars.prefix(60))
            case .integer(let number): "\(number)"
            case .blob: ""
            }
        let name = FileName.new(label ?? keyLabel, hasExtension: label != nil)
        try files.write(payload, as: name)
        (file, payload) = (name, Data())
    }
}

/// The condition under which entries are written; asked in the transaction of the write.
package enum PutCondition: Sendable {
    case always
    case absent
    case unchanged(id: Int64, revision: Int64)
    /// The closure returns true. It runs under the writer's lock, so it only looks at an atomic or takes a leaf lock. It is
    /// called again if the transaction is.
    case check(@Sendable () -> Bool)
}

/// A change of attributes, which reads no payload.
package enum AttributeChange: Sendable {
    case extendedData(Data?)
    case pin(Bool)
    /// Restarts the age at a moment, with another age of the entry's own; nil leaves the one that it has.
    case touch(at: Int64, ownAge: AgeRule?)
    /// Restarts the age of a row at a moment, whether it has expired or not, unless it was written since.
    case renew(RowFacts, at: Int64)
}

/// The changes that a request can make to the rows of one cache.
package enum RowOperation: Sendable {
    case put([EntryWrite], if: PutCondition)
    /// - Parameter if: Asked in the transaction, as ``PutCondition/check(_:)``.
    case remove([StoredKey], if: (@Sendable () -> Bool)? = nil)
    case take(StoredKey)
    /// Changes an entry, unless it has expired at the moment.
    case change(StoredKey, AttributeChange, at: Int64 = .min)
    case clear

    /// The keys that the operation writes or removes, unless a load stores its result with it; nil for all.
    var overtakingKeys: [StoredKey]? {
        switch self {
        case .clear: nil
        case .put(_, if: .check), .remove(_, if: .some), .change(_, .renew, _): []
        case .put(let entries, _): entries.map(\.key)
        case .remove(let keys, _): keys
        case .take(let key), .change(let key, _, _): [key]
        }
    }

    /// The value files that were written for the operation.
    var files: [String] {
        guard case .put(let entries, _) = self else { return [] }
        return entries.compactMap(\.file)
    }
}

/// What is known of a cache once it is opened.
struct Opened: Sendable {
    /// The place of the opening in the order of commits of openings and removals.
    var count = 0
    /// A Boolean value that indicates whether it has begun a generation.
    var isNew = false
    var limits = Limits()
    var hasStoreLimits = false
}

/// The result of a request.
@usableFromInline
package struct Outcome: Sendable {
    /// What has happened to one key.
    @usableFromInline
    package struct RowChange: Sendable {
        @usableFromInline package let key: StoredKey
        /// The new row; nil if the row was removed.
        @usableFromInline package let row: RowStamp?
    }

    /// The rows that were written or removed, in order.
    ///
    /// A clear lists none.
    @usableFromInline package var rows: [RowChange] = []
    /// The totals of the rows that a clear removed; nil for other requests.
    package var cleared: Totals?
    /// The row that was removed; without its payload if that is in a file, which the caller reads and discards.
    package var taken: StoredRow?
    /// The folder of that file.
    var files: ValueFiles?
    var opening = Opened()
    /// The generation of the rows after the request.
    package var generation: Int64 = 0
    /// The epoch in which the written rows are valid.
    @usableFromInline package var epoch: UInt32 = 0
    /// What the request has displaced in memory.
    var deferred = Deferred()
    /// What the request adds to the totals.
    package var difference = Totals()

    func `in`(_ epoch: UInt32) -> Outcome {
        var outcome = self
        outcome.epoch = epoch
        return outcome
    }
}
