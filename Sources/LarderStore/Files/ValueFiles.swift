internal import Dispatch
internal import Foundation
internal import LarderLocks

/// The folder of the payloads that are too large for a row, a file each.
///
/// A file is written before the row that names it is committed, and is not changed while a row names it. After the commit
/// that displaces it, it is deleted, or overwritten under a new name: creating a file costs ten times what its bytes cost.
///
/// Safety: bytes are read inside the call that lends them.
package final class ValueFiles: Sendable {
    private let folder: String
    /// The folder with a slash.
    private let prefix: String
    private let database: OpenedFile
    private let syncs: Bool
    /// A Boolean value that indicates whether the name of the folder is on the disk, whichever process created it.
    private let isFolderSynced = Atomic(false)
    /// The files that wait to be overwritten, under their old names.
    ///
    /// After a crash the sweep deletes them.
    private let pool = Mutex(Pool())

    private struct Pool {
        var files: [(name: String, size: Int64)] = []
        var isClosed = false

        func fits(_ size: Int64) -> Bool {
            !isClosed && files.count < 32 && files.reduce(size) { $0 + $1.size } <= 16 << 20
        }
    }
    /// Does the work of tasks, whose threads must not wait for the disk.
    private let queue = DispatchQueue(label: "larder.files")
    private static let queueKey = DispatchSpecificKey<ObjectIdentifier>()

    init(_ database: OpenedFile) {
        self.database = database
        syncs = database.file.options.durability == .powerLoss
        folder =
            database.file.options.isReadOnly ? Self.folderToRead(of: database.path) : Self.folder(of: database.path)
        prefix = folder + "/"
        queue.setSpecific(key: Self.queueKey, value: ObjectIdentifier(self))
    }

    /// Returns the folder of the value files of a store: `x.files` for `x.sqlite`, and `x.values` for `x`.
    package static func folder(of path: String) -> String {
        path.hasSuffix(".sqlite") ? String(path.dropLast(7)) + ".files" : path + ".values"
    }

    /// Returns the folder that a read-only store reads: a database that was set aside has left its files where they were.
    ///
    /// The first step of the schema had those of `x` in `x.files`.
    package static func folderToRead(of path: String) -> String {
        let suffix = ".damaged"
        let path = path.hasSuffix(suffix) ? String(path.dropLast(suffix.count)) : path
        let (folder, first) = (folder(of: path), path + ".files")
        return !isFolder(folder) && isFolder(first) ? first : folder
    }

    private static func isFolder(_ path: String) -> Bool {
        do { return try FileSystem.status(path)?.isFolder == true } catch { return false }
    }

    private func path(_ name: String) -> String { prefix + name }

    private func exists() throws(FileError) -> Bool {
        guard let status = try FileSystem.status(folder) else { return false }
        guard status.isFolder else { throw FileError(number: ENOTDIR, call: "open", path: folder) }
        return true
    }

    // MARK: Writing

    func write(_ payload: Data, as name: String) throws(StoreError) {
        try withRoom { try payload.withUnsafeBytes { try write($0, name) } }
    }

    /// Opens a file of the program.
    static func source(_ path: String) throws(StoreError) -> FileSystem.Source {
        try StoreError.translating { try FileSystem.source(path) }
    }

    /// Copies a file of the program, and returns its checksum.
    func copy(_ source: borrowing FileSystem.Source, as name: String) throws(StoreError) -> Int64 {
        try withRoom {
            try prepare()
            let checksum = try FileSystem.copy(source, to: path(name), syncs: syncs) {
                try requireRoom(for: source.size)
            }
            // A clone keeps that of its source.
            try database.file.options.protect?([path(name)])
            if syncs { try FileSystem.sync(folder) }
            return Int64(bitPattern: checksum)
        }
    }

    /// Runs `body`, and again on a full disk if files that wait to be overwritten can be deleted.
    private func withRoom<R>(_ body: () throws -> R) throws(StoreError) -> R {
        try StoreError.translating {
            do { return try body() } catch let error as FileError where error.isAboutRoom && emptyPool() {
                return try body()
            }
        }
    }

    /// Creates the folder.
    private func prepare() throws(FileError) {
        if try !exists() {
            isFolderSynced.store(false, ordering: .relaxed)
            try FileSystem.makeFolders(folder)
        }
        if syncs && !isFolderSynced.load(ordering: .relaxed) {
            try FileSystem.sync(FileSystem.folder(of: folder))
            isFolderSynced.store(true, ordering: .relaxed)
        }
    }

    private func write(_ bytes: UnsafeRawBufferPointer, _ name: String) throws(FileError) {
        try prepare()
        try requireRoom(for: Int64(bytes.count))
        if try !recycle(for: bytes, as: name) {
            _ = try FileSystem.write(bytes, path(name), oldSize: nil, syncs: syncs)
        }
        if syncs { try FileSystem.sync(folder) }
    }

    /// Throws if the file would take the room that the log needs while there is no ballast.
    private func requireRoom(for size: Int64) throws(FileError) {
        let free = try freeSpace()
        if free >= size + Ballast.maxSize { return }
        let kept = Ballast.size(for: try FileSystem.status(database.path)?.size ?? 0)
        if free + database.ballast.size < size + kept { throw FileError(number: ENOSPC, call: "create", path: folder) }
    }

    private func recycle(for bytes: UnsafeRawBufferPointer, as name: String) throws(FileError) -> Bool {
        // The folder was looked at.
        guard let old = pool.withLock({ $0.files.popLast() }), try database.isInPlace() else { return false }
        if try FileSystem.write(bytes, path(old.name), oldSize: old.size, syncs: syncs) {
            return try FileSystem.rename(path(old.name), to: path(name))
        }
        try FileSystem.delete(path(old.name))
        return false
    }

    // MARK: Reading

    /// Returns a row with its payload; nil if its file is missing or does not fit the checksum.
    ///
    /// A file that was displaced may be overwritten at any moment, so the row is read again before this counts as damage.
    func complete(_ row: StoredRow) throws(StoreError) -> StoredRow? {
        guard let name = row.header.file else { return row.isSound ? row : nil }
        let payload = try StoreError.translating {
            let payload = try FileName.isValid(name) ? FileSystem.read(path(name), size: row.header.payloadSize) : nil
            // What is in the place of the folder may go again, and the file be there.
            if payload == nil { _ = try exists() }
            return payload
        }
        guard let payload, RowChecksum.ofPayload(payload) == row.fileChecksum else { return nil }
        return StoredRow(header: row.header, payload: payload)
    }

    /// Returns whether the file of a row that is being written is still there.
    func contains(_ name: String) throws(FileError) -> Bool { try FileSystem.status(path(name)) != nil }

    /// Makes a file as young as if it were written now, so that no process sweeps it.
    func makeYoung(_ name: String) throws(FileError) {
        guard FileName.isValid(name), try exists() else { return }
        // A link in its place is deleted, and the file that it names is of no concern.
        utimensat(AT_FDCWD, path(name), nil, AT_SYMLINK_NOFOLLOW)
    }

    /// Makes a file read-only, and returns its path; nil if it is missing.
    ///
    /// By this every process knows that the file has to be deleted and not overwritten: who has it open goes on reading the
    /// old bytes. The path is good if a row names the file after this call.
    func handOut(_ name: String) throws(StoreError) -> String? {
        try StoreError.translating {
            guard try FileName.isValid(name) && exists() else { return nil }
            let isThere =
                try database.file.options.isReadOnly
                ? FileSystem.status(path(name))?.isFile == true : FileSystem.makeReadOnly(path(name))
            return isThere ? path(name) : nil
        }
    }

    // MARK: Discarding

    /// Deletes files that no row names any more, or keeps them to be overwritten.
    ///
    /// If the database was moved since its row was committed, the files stay: they may belong to another one now. What cannot
    /// be deleted is left to the sweep.
    func discard(_ names: [String]) {
        if names.isEmpty { return }
        do { if try !isInPlace() { return } } catch { return }
        for name in names where FileName.isValid(name) {
            do {
                guard let status = try FileSystem.status(path(name)) else { continue }
                let isKept = pool.withLock { pool in
                    let isKept = status.isChangeable && pool.fits(status.size)
                    if isKept { pool.files.append((name, status.size)) }
                    return isKept
                }
                if !isKept { try FileSystem.delete(path(name)) }
            } catch {}
        }
    }

    /// Waits for the files that tasks have displaced.
    ///
    /// Code of the program that runs on the queue may call this: what came before it is done.
    func finish() {
        if DispatchQueue.getSpecific(key: Self.queueKey) != ObjectIdentifier(self) { queue.sync {} }
    }

    func discardLater(_ names: [String]) { queue.async { [self] in discard(names) } }

    func onQueue<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try body() }) }
        }
    }

    /// Deletes the files that wait to be overwritten, and returns whether there were any.
    ///
    /// - Parameter isLast: A Boolean value that indicates whether none is kept from now on.
    @discardableResult
    func emptyPool(isLast: Bool = false) -> Bool {
        let files = pool.withLock { pool in
            defer { pool = Pool(isClosed: isLast) }
            return pool.files
        }
        do {
            guard try isInPlace() else { return false }
            for file in files { try FileSystem.delete(path(file.name)) }
        } catch {}
        return !files.isEmpty
    }

    /// Returns whether there is a folder and the database is the one that was opened.
    private func isInPlace() throws(FileError) -> Bool { try database.isInPlace() ? exists() : false }

    // MARK: Upkeep

    func freeSpace() throws(FileError) -> Int64 { try FileSystem.freeSpace(FileSystem.folder(of: folder)) }

    /// Returns the names of all files of the store, those that wait to be overwritten excepted.
    func names() throws(FileError) -> [String] {
        guard try exists() else { return [] }
        let pooled = Set(pool.withLock { $0.files.map(\.name) })
        return try FileSystem.names(in: folder).filter { FileName.isOwn($0) && !pooled.contains(FileName.composed($0)) }
    }

    /// Deletes those of the files that were written before `moment` and that no row names.
    ///
    /// Called under the write lock, so that no row comes to name one.
    ///
    /// - Returns: The number of deleted files, and whether there are younger ones without a row.
    func sweep(
        _ names: some Sequence<String>, writtenBefore moment: Int64, isNamed: (String) throws -> Bool
    ) throws -> (deleted: Int, hasYoung: Bool) {
        guard try isInPlace() else { return (0, false) }
        var (deleted, hasYoung) = (0, false)
        for name in names where try !isNamed(FileName.composed(name)) {
            do {
                guard let status = try FileSystem.status(path(name)), status.isFile else { continue }
                if status.modifiedAt < moment {
                    try FileSystem.delete(path(name))
                    deleted += 1
                } else {
                    hasYoung = true
                }
            } catch {}
        }
        return (deleted, hasYoung)
    }

    /// Returns whether there is such a file that was written before a moment.
    func isWritten(_ name: String, before moment: Int64) throws(FileError) -> Bool {
        guard let status = try FileSystem.status(path(name)), status.isFile else { return false }
        return status.modifiedAt < moment
    }
}

/// The names of value files: a part that people can read, random digits, and an extension.
package enum FileName {
    /// Returns a name that no file ever had.
    ///
    /// - Parameter hasExtension: A Boolean value that indicates whether what is after the last dot is an extension.
    static func new(_ suggestion: String, hasExtension: Bool) -> String {
        let scalars = composed(suggestion).unicodeScalars
        let dot = hasExtension ? scalars.lastIndex(of: ".") ?? scalars.endIndex : scalars.endIndex
        let (head, end) = (clean(scalars[..<dot], limit: 160), clean(scalars[dot...].dropFirst(), limit: 32))
        var digits = ""
        // Numbers of thirteen and of seven digits.
        repeat {
            digits =
                String(UInt64.random(in: 4_738_381_338_321_616_896 ... .max), radix: 36)
                + String(UInt64.random(in: 2_176_782_336..<78_364_164_096), radix: 36)
        } while !isOwn(digits)
        return (head.isEmpty ? "" : head + "-") + digits + (end.isEmpty ? "" : "." + end)
    }

    /// Returns whether a name has random digits where ``new(_:hasExtension:)`` puts them: the file is a store's, and no other program's.
    ///
    /// There are twenty, and some less in the names of the first stores.
    package static func isOwn(_ name: String) -> Bool {
        func ends(_ stem: Substring) -> Bool {
            let digits = stem[(stem.lastIndex(of: "-").map { stem.index(after: $0) } ?? stem.startIndex)...].utf8
            return (16...20).contains(digits.count)
                && digits.allSatisfy { (48...57).contains($0) || (97...122).contains($0) }
                && digits.contains { $0 < 58 } && digits.contains { $0 > 96 }
        }
        return ends(name[...]) || name.lastIndex(of: ".").map { ends(name[..<$0]) } ?? false
    }

    /// Returns a name in the form that rows have.
    ///
    /// A disk in the format HFS+ lists names decomposed, and finds a file by either form.
    static func composed(_ name: String) -> String {
        name.utf8.allSatisfy { $0 < 0x80 } ? name : name.precomposedStringWithCanonicalMapping
    }

    /// Returns a name for the file of a key.
    ///
    /// - Parameter label: The readable part; nil for one that the key gives.
    static func new(of key: StoredKey, _ label: String?) -> String {
        let ofKey =
            switch key {
            case .text(let text): String(text.unicodeScalars.prefix(60))
            case .integer(let number): "\(number)"
            case .blob: ""
            }
        return new(label ?? ofKey, hasExtension: label != nil)
    }

    /// Returns whether `name` is the name of a file inside the folder.
    static func isValid(_ name: String) -> Bool {
        let bytes = name.utf8
        return (1...255).contains(bytes.count) && bytes.first != UInt8(ascii: ".")
            && !bytes.contains { $0 == 0 || $0 == UInt8(ascii: "/") }
    }

    /// Replaces what leaves the folder, hides the file or confuses a terminal, and cuts what is too long.
    private static func clean(_ text: Substring.UnicodeScalarView, limit: Int) -> String {
        var (result, size) = (String.UnicodeScalarView(), 0)
        for scalar in text {
            let isKept =
                scalar.properties.isAlphabetic || scalar.properties.numericType != nil || scalar == "_"
                || (!result.isEmpty && "-. ".unicodeScalars.contains(scalar))
            size += isKept ? UTF8.width(scalar) : 1
            if size > limit { break }
            result.append(isKept ? scalar : "_")
        }
        return String(result)
    }
}
