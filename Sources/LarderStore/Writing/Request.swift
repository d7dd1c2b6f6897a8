public import Foundation
internal import LarderSQLite

/// A change that waits for the writer, and its result.
///
/// Safety: `result` and `performed` are written under the writer's lock, and read under it or by the caller after `isDone` was seen under it.
/// `continuation`, `deadline`, `isCancelled` and `isWaiting` are used under the queue's lock until the request is taken out of the queue, and then by
/// the thread that took it.
final class Request: @unchecked Sendable {
    enum Work: Sendable {
        /// - Parameter evicts: A Boolean value that indicates whether other rows of the cache are evicted if the disk is full.
        case rows(RowOperation, CacheDeclaration, evicts: Bool)
        /// A chore of the store itself: opening, upkeep.
        case block(@Sendable (WriterState) throws -> Outcome)
    }

    let work: Work
    var deadline = Deadline(in: 0)
    private let apply: CacheRows.Apply?

    private(set) var result: Result<Outcome, StoreError>?
    /// The result of the work, if the open transaction is committed.
    private var performed: Result<Outcome, StoreError> = .failure(.closed)
    var continuation: CheckedContinuation<Outcome, any Error>?
    var isCancelled = false
    /// A Boolean value that indicates whether it is in the queue.
    var isWaiting = false

    init(_ work: Work, apply: CacheRows.Apply?) { (self.work, self.apply) = (work, apply) }

    var isDone: Bool { result != nil }

    var isFull: Bool { if case .failure(let error) = result { error.code == .storageFull } else { false } }

    /// The bytes that it adds; nil if it adds none.
    var addedBytes: Int? {
        switch work {
        case .rows(.put(let entries, _, _), _, _): entries.reduce(0) { $0 + $1.payload.count }
        case .rows(.change, _, _), .rows(.note, _, _): 0
        default: nil
        }
    }

    /// The cache whose rows may go if the disk is full.
    var evictedCache: CacheDeclaration? {
        if case .rows(_, let cache, evicts: true) = work, addedBytes != nil { cache } else { nil }
    }

    /// Does the work in the open transaction, and keeps what comes of it until the commit.
    ///
    /// It can be done again. What is refused has changed nothing, which does not concern the other requests of the batch.
    func perform(_ state: WriterState) throws {
        switch work {
        case .rows(let operation, let cache, _):
            do throws(StoreError) {
                performed = .success(try state.perform(operation, on: cache))
            } catch  where error.isRefusal {
                performed = .failure(error)
            }
        case .block(let block):
            performed = .success(try block(state))
        }
    }

    /// Called after the commit, in the order of commits.
    func end(_ epoch: UInt32) {
        result = performed.map { outcome in
            var (outcome, deferred) = (outcome, Deferred())
            outcome.epoch = epoch
            apply?(outcome, &deferred)
            outcome.deferred = deferred
            return outcome
        }
    }

    func fail(_ error: StoreError) { result = .failure(error) }

    /// Lets the waiting task go on, outside all locks.
    ///
    /// A request without a result was cancelled.
    func resume() { continuation?.resume(with: result.map { $0.mapError { $0 } } ?? .failure(CancellationError())) }
}

/// A change of attributes, which reads no payload.
package enum AttributeChange: Sendable {
    case extendedData(Data?)
    case pin(Bool)
    /// Restarts the age at a moment, with another age of the entry's own; nil leaves the one that it has.
    case touch(at: Int64, ownAge: AgeRule?)
    /// Restarts the age of a row at a moment, whether it has expired or not, unless it was written since.
    case renew(EntryHeader, at: Int64)
}

/// Whether a change may be made.
///
/// It is asked under the writer's lock in the transaction, and again if that is done again, so it takes a leaf lock alone. Asking may claim:
/// then no other condition holds after it.
package protocol ChangeCondition: Sendable {
    func holds() -> Bool
}

/// Loads that are not to store their results.
package enum Overtaken: Sendable {
    case keys([StoredKey])
    /// Those whose results have a tag.
    case tagged(String)
    /// Those of keys that are texts which begin so.
    case prefix(String)
    case all

    var isEmpty: Bool { if case .keys(let keys) = self { keys.isEmpty } else { false } }
}

/// The changes that a request can make to the rows of one cache.
package enum RowOperation: Sendable {
    /// Whose change it is, which decides the loads that it overtakes.
    package enum Origin: Sendable {
        case program
        /// The load with a number, whose condition claims its keys.
        case load(Int)
    }

    case put([EntryWrite], by: Origin = .program, if: (any ChangeCondition)? = nil)
    case remove([StoredKey], by: Origin = .program, if: (any ChangeCondition)? = nil)
    case take(StoredKey)
    /// Changes an entry, unless it has expired at the moment.
    case change(StoredKey, AttributeChange, at: Int64 = .min)
    case clear
    /// Writes notes next to the entries by their numbers; nil deletes one.
    case note([Int64: [UInt8]?])

    /// The loads that the operation overtakes before its condition is asked; nil if it is a load's, and for a clear, which overtakes
    /// all loads where the rows are retired.
    var overtakesBefore: Overtaken? {
        switch self {
        case .put(_, by: .load, _), .remove(_, by: .load, _), .change(_, .renew, _), .note, .clear: nil
        case .put(let entries, _, _): .keys(entries.map(\.key))
        case .remove(let keys, _, _): .keys(keys)
        case .take(let key), .change(let key, _, _): .keys([key])
        }
    }

    /// The value files that were written for the operation.
    var files: [String] {
        guard case .put(let entries, _, _) = self else { return [] }
        return entries.compactMap(\.file)
    }
}

/// What is known of a cache once it is opened.
struct Opened: Sendable {
    /// The place of the opening in the order of commits of openings and removals.
    var count = 0
    /// A Boolean value that indicates whether it has begun an incarnation.
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
        @usableFromInline package let row: RowSummary?
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
    /// The epoch in which the written rows are valid.
    @usableFromInline package var epoch: UInt32 = 0
    /// What the request has displaced in memory.
    var deferred = Deferred()
    /// What the request adds to the totals.
    package var difference = Totals()
}

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

/// What follows transactions once the writer's lock is released.
struct Aftermath {
    /// The rows of a cache that were removed by age, limit or tag, and the tiers that were told so.
    struct Removal {
        let cache: CacheIdentity
        let rows: [RemovedRow]
        let tiers: [any TierDelegate]
    }

    /// The files that no row names any more, to be discarded, and the folder in which they are.
    var files: [String] = []
    var folder: ValueFiles?
    var removals: [Removal] = []
    var events: [StoreEvent] = []
    /// The watch of the file that was opened again, and whether it is the same file as before.
    var opened: (watch: CommitWatch, isSameFile: Bool)?
    /// The part of evictions that the call goes on with.
    var share = EvictionShare()
    /// A Boolean value that indicates whether a limit depends on rows that are to be counted.
    var needsCount = false
    /// Objects whose end may run code of the program.
    var released: [Any] = []
}

/// Objects to release once no lock is held.
///
/// Releasing a value or a key may run code of the program, which may call the cache. So code that removes one under a
/// lock adds it here, and the caller releases all of them when no lock is held any more.
@usableFromInline
package struct Deferred: Sendable {
    @usableFromInline var objects: [any Sendable] = []

    @inlinable
    package init() {}

    /// Adds an object; nil is nothing to release.
    @inlinable @inline(__always)
    package mutating func add(_ object: (any Sendable)?) {
        if let object { objects.append(object) }
    }
}
