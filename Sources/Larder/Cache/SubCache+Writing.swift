public import Foundation

#if LARDER_TSAN
internal import LarderTSan
public import struct Synchronization.Atomic
#else
public import Synchronization
#endif

/// A value on its way to a row.
@usableFromInline
struct PreparedWrite<Key: Codable & Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let key: Key
    @usableFromInline let hash: UInt64
    @usableFromInline let stored: StoredKey
    @usableFromInline let value: Value
    @usableFromInline var content: WrittenContent
    @usableFromInline let cost: Int
    /// What key and value take in memory outside the table.
    @usableFromInline let bytes: Int

    @inlinable
    init(key: Key, hash: UInt64, stored: StoredKey, value: Value, content: WrittenContent, cost: Int, bytes: Int) {
        self.key = key
        self.hash = hash
        self.stored = stored
        self.value = value
        self.content = content
        self.cost = cost
        self.bytes = bytes
    }
}

/// The way of a single value is compiled in the user's module, as that of a pass is.
extension SubCache {
    /// Encodes what is to be written, and writes the file where it is large; no lock is held.
    @inlinable
    func prepare(
        _ value: Value, forKey key: Key, cost: Int? = nil, age: MaxAge? = nil, extended: Data? = nil,
        isPinned: Bool? = nil, _ terms: CacheTerms<Value>
    ) throws(CacheError) -> PreparedWrite<Key, Value> {
        var write = try encoded(
            value, forKey: key, cost: cost, age: age, extended: extended, isPinned: isPinned, terms)
        if isLarge(write, terms) {
            write.content.spilled = try spilled(write.content.row.payload, write.stored, terms)
        }
        return write
    }

    /// Encodes what is to be written; no lock is held, and no file written.
    @inlinable @inline(__always)
    func encoded(
        _ value: Value, forKey key: Key, cost: Int? = nil, age: MaxAge? = nil, extended: Data? = nil,
        isPinned: Bool? = nil, _ terms: CacheTerms<Value>
    ) throws(CacheError) -> PreparedWrite<Key, Value> {
        if let age { try check(age) }
        let stored = try keyCodec.stored(key, cache: name)
        let payload = try terms.codec.encode(value, cache: name, key: stored.description)
        try ledger.checkSize(Int64(payload.count + (extended?.count ?? 0)), of: stored)
        return prepared(
            value, forKey: key, stored, payload, cost: cost, age: age.map { StoredAge($0.rule) }, extended: extended,
            isPinned: isPinned, terms)
    }

    /// What is to be written of a value that is encoded.
    @inlinable @inline(__always)
    func prepared(
        _ value: Value, forKey key: Key, _ stored: StoredKey, _ payload: Data, cost: Int?, age: StoredAge?,
        extended: Data?, isPinned: Bool?, _ terms: CacheTerms<Value>
    ) -> PreparedWrite<Key, Value> {
        let row = EntryContent(
            payload: payload, extended: extended, writtenAt: terms.now(), age: age, isPinned: isPinned,
            cost: cost.map { MemoryCacheState<Key, Value>.clamped($0) })
        return PreparedWrite(
            key: key, hash: seed.hash(key), stored: stored, value: value, content: WrittenContent(row),
            cost: MemoryCacheState<Key, Value>.clamped(cost ?? payload.count),
            bytes: bytes(of: key, stored, payloadSize: payload.count))
    }

    /// What an entry takes in memory outside the table; a cost that is given changes nothing of that.
    @inlinable @inline(__always)
    func bytes(of key: Key, _ stored: StoredKey, payloadSize: Int) -> Int {
        EntryBytes.ofKey(key, encodedCount: stored.encodedCount)
            + EntryBytes.ofValue(Value.self, encodedCount: payloadSize)
    }

    /// Whether a payload belongs into a file, where there are any.
    @inlinable @inline(__always)
    func isLarge(_ write: PreparedWrite<Key, Value>, _ terms: CacheTerms<Value>) -> Bool {
        write.content.row.payload.count > terms.inlineLimit
    }

    /// Writes the files of what was encoded; gives those up that it made if one fails.
    func spill(_ writes: inout [PreparedWrite<Key, Value>], _ terms: CacheTerms<Value>) throws(CacheError) {
        do throws(CacheError) {
            for index in writes.indices where isLarge(writes[index], terms) {
                let write = writes[index]
                writes[index].content.spilled = try spilled(write.content.row.payload, write.stored, terms)
            }
        } catch {
            discard(writes)
            throw error
        }
    }

    /// The same without holding up this thread.
    @usableFromInline
    func spilled(
        _ writes: [PreparedWrite<Key, Value>], _ terms: CacheTerms<Value>
    ) async throws(CacheError) -> [PreparedWrite<Key, Value>] {
        guard writes.contains(where: { isLarge($0, terms) }) else { return writes }
        return try await offload { () throws(CacheError) in
            var writes = writes
            try self.spill(&writes, terms)
            return writes
        }
    }

    /// Gives up the files of what was not written after all.
    func discard(_ writes: [PreparedWrite<Key, Value>]) {
        for write in writes { write.content.spilled?.discard() }
    }

    @usableFromInline
    func check(_ age: MaxAge) throws(CacheError) {
        if age.isNumber { return }
        throw CacheError(
            .invalidConfiguration,
            "The maximum age for a key of cache \"\(name)\" was made from not-a-number; give a number.")
    }

    /// Writes a payload that is too large for a row into a file; nil where there are none.
    @usableFromInline
    func spilled(
        _ payload: Data, _ stored: StoredKey, _ terms: CacheTerms<Value>
    ) throws(CacheError) -> SpilledPayload? {
        guard !payload.isEmpty, let blobs = try ledger.store.present().blobs else { return nil }
        let label = terms.fileName.map { BlobLabel(suggestion: $0(stored.description)) } ?? .none
        let spilled = SpilledPayload(payload, label: label)
        do throws(SystemError) {
            do throws(SystemError) {
                _ = try spilled.file(in: blobs)
            } catch {
                // The log may have grown over what is needed here.
                guard error.isAboutRoom, ledger.store.regainRoom() else { throw error }
                _ = try spilled.file(in: blobs)
            }
        } catch {
            let action = "cannot write the value for key \(stored) of cache \"\(name)\" into a file"
            guard error.isAboutRoom else { throw CacheError(action, error) }
            try ledger.store.evictingOnFullDisk(payload.count, isAllowed: evictsOnFullDisk) { () throws(CacheError) in
                do throws(SystemError) {
                    _ = try spilled.file(in: blobs)
                } catch {
                    throw CacheError(action, error)
                }
            }
        }
        ledger.store.noteFiles()
        return spilled
    }

    /// Does the write of one value; the file that it made is given up if it fails.
    @inlinable
    func put(_ write: PreparedWrite<Key, Value>) throws(CacheError) {
        do throws(CacheError) {
            try ledger.run(setRequest(write))
        } catch {
            try putAgain(write, after: error)
        }
        if isTooLarge(write) { reportTooCostly([write]) }
    }

    /// Writes a value that found no room once more, after an eviction; gives its file up if it fails.
    @usableFromInline
    func putAgain(_ write: PreparedWrite<Key, Value>, after error: CacheError) throws(CacheError) {
        try runAgain([write], after: error) { () throws(CacheError) in try ledger.run(setRequest(write)) }
    }

    /// Writes a value that found no room once more, without holding up this thread.
    @usableFromInline
    func putAgain(_ write: PreparedWrite<Key, Value>, after error: CacheError) async throws(CacheError) {
        if error.code != .storageFull { try await giveUp([write], error) }
        try await offload { () throws(CacheError) in try self.putAgain(write, after: error) }
    }

    /// Does a write that found no room again, after an eviction; gives the files of the values up if it fails.
    func runAgain(
        _ writes: [PreparedWrite<Key, Value>], after error: CacheError, _ write: () throws(CacheError) -> Void
    ) throws(CacheError) {
        do throws(CacheError) {
            guard error.code == .storageFull else { throw error }
            let size = writes.reduce(0) { $0 + $1.content.row.size }
            var isFirst = true
            try ledger.store.evictingOnFullDisk(size, isAllowed: evictsOnFullDisk) { () throws(CacheError) in
                defer { isFirst = false }
                if isFirst { throw error }
                try write()
            }
        } catch {
            discard(writes)
            throw error
        }
    }

    /// Whether entries are evicted when the disk is full.
    var evictsOnFullDisk: Bool { ledger.evictsOnFullDisk.load(ordering: .relaxed) }

    /// The same without holding up this thread.
    @inlinable
    func put(_ write: PreparedWrite<Key, Value>) async throws(CacheError) {
        do throws(CacheError) {
            try await ledger.run(setRequest(write))
        } catch {
            try await putAgain(write, after: error)
        }
        if isTooLarge(write) { reportTooCostly([write]) }
    }

    /// Does a write; the files that it made are given up if it fails.
    func run(_ writes: [PreparedWrite<Key, Value>]) throws(CacheError) {
        do throws(CacheError) {
            try ledger.run(setRequest(writes))
        } catch {
            try runAgain(writes, after: error) { () throws(CacheError) in try ledger.run(setRequest(writes)) }
        }
        reportTooCostly(writes)
    }

    /// A Boolean value that indicates whether memory cannot take an entry, whatever else leaves.
    @inlinable @inline(__always)
    func isTooLarge(_ write: PreparedWrite<Key, Value>) -> Bool {
        write.cost > costLimit.load(ordering: .relaxed) || write.bytes > outsideLimit.load(ordering: .relaxed)
    }

    /// Reports values that memory cannot take; nothing is held.
    @usableFromInline
    func reportTooCostly(_ writes: [PreparedWrite<Key, Value>]) {
        let limit = costLimit.load(ordering: .relaxed)
        for write in writes where isTooLarge(write) {
            let reason =
                write.cost > limit
                ? "costs \(write.cost), more than all of memory may (\(limit))"
                : "takes \(write.bytes + FrontState<Key, Value>.overhead) bytes with its key, more than all of memory may"
            report(
                .limitReached, key: write.stored, "A value of cache \"\(name)\" \(reason); it is on disk only.", .info)
        }
    }

    /// The same without holding up this thread.
    func run(_ writes: [PreparedWrite<Key, Value>]) async throws(CacheError) {
        do throws(CacheError) {
            try await ledger.run(setRequest(writes))
        } catch {
            if error.code != .storageFull { try await giveUp(writes, error) }
            try await offload { () throws(CacheError) in
                try self.runAgain(writes, after: error) { () throws(CacheError) in
                    try self.ledger.run(self.setRequest(writes))
                }
            }
        }
        reportTooCostly(writes)
    }

    /// Gives up the files of what was not written, outside the cooperative pool, and throws why.
    @usableFromInline
    func giveUp(
        _ writes: [PreparedWrite<Key, Value>], _ error: CacheError
    ) async throws(CacheError) -> Never {
        if writes.contains(where: { $0.content.spilled != nil }) {
            try await offload { () throws(CacheError) in self.discard(writes) }
        }
        throw error
    }
}
