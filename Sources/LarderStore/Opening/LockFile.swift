internal import Foundation
internal import LarderLocks

/// A file whose lock keeps two processes from setting up, repairing or migrating one store at the same time.
package struct LockFile: Sendable {
    package let path: String

    package init(path: String) { self.path = path }

    /// The lock under which the caches of a store are migrated, for which no other writer waits.
    static func ofMigration(_ store: String) -> LockFile { LockFile(path: store + migrationSuffix) }

    static let migrationSuffix = ".migration"
    /// The ending of the lock of the process that shares caches of a store.
    static let sharingSuffix = ".shared"

    /// Runs `body` while this thread holds the lock, of all threads of all processes.
    ///
    /// The kernel releases the lock if the process ends. Those that wait for the lock of a deleted file begin again.
    ///
    /// - Parameters:
    ///   - creates: A Boolean value that indicates whether a missing file is created. If not, `body` runs without it.
    ///   - deletes: A Boolean value that indicates whether the file is deleted after `body`.
    /// - Returns: The result of `body`, or nil if another process held the lock until the deadline.
    package func withLock<R: ~Copyable>(
        until deadline: Deadline, creates: Bool = true, deletes: Bool = false, _ body: () throws -> R
    ) throws -> R? {
        try withLock(until: deadline, creates: creates, deletes: deletes) { _ in try body() }
    }

    /// Runs `body` while this thread holds the lock, which another thread may release before.
    func withLock<R: ~Copyable>(
        until deadline: Deadline, creates: Bool = true, deletes: Bool = false, _ body: (HeldLock?) throws -> R
    ) throws -> R? {
        let found: HeldLock?
        do throws(FileError) { found = try hold(until: deadline, creates: creates) } catch {
            // It is missing, or may not be read.
            if !creates && error.call == "open" { return try body(nil) }
            throw error
        }
        guard let held = found else { return nil }
        // Once it is released, the file may be that of another process.
        defer { held.release { if deletes { delete() } } }
        return try body(held)
    }

    /// Takes the lock and keeps it; nil if another process held it until the deadline.
    func hold(until deadline: Deadline, creates: Bool = true) throws(FileError) -> HeldLock? {
        while true {
            let descriptor = open(path, (creates ? O_RDWR | O_CREAT : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw FileSystem.failure("open", path) }
            let held = HeldLock(descriptor)
            guard try lock(descriptor, until: deadline) else { return nil }
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw FileSystem.failure("fstat", path) }
            // The file of another process may have been deleted in the meantime.
            if try FileSystem.status(path)?.identity == FileIdentity(status) { return held }
        }
    }

    /// Deletes the file, while the lock is held.
    func delete() { unlink(path) }

    /// A Boolean value that indicates whether a store is set up, or was, at the path.
    package var isMarked: Bool { do { return try FileSystem.status(path)?.size ?? 0 > 0 } catch { return false } }

    /// Marks that a store is set up, so that a file whose first page is damaged is known as one.
    ///
    /// - Parameter syncs: A Boolean value that indicates whether the mark is on the disk when this returns, though another
    ///   process may have written it.
    func mark(syncs: Bool) throws(FileError) {
        if isMarked && !syncs { return }
        let descriptor = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileSystem.failure("open", path) }
        defer { close(descriptor) }
        guard isMarked || write(descriptor, "L", 1) == 1 else { throw FileSystem.failure("write", path) }
        if !syncs { return }
        try FileSystem.sync(descriptor, path)
        try FileSystem.sync(FileSystem.folder(of: path))
    }

    /// A blocking `flock` has no time limit, so this looks again after 1, 2, 4, then 8 milliseconds.
    private func lock(_ descriptor: Int32, until deadline: Deadline) throws(FileError) -> Bool {
        var pause: Int32 = 1
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else { throw FileSystem.failure("flock", path) }
            let remaining = deadline.remaining
            guard remaining > 0 else { return false }
            poll(nil, 0, min(pause, Int32(clamping: remaining)))
            pause = min(pause * 2, 8)
        }
        return true
    }
}

/// The lock of a file as long as it is held.
final class HeldLock: Sendable {
    /// The open file; -1 once the lock is released.
    private let descriptor: Atomic<Int32>

    init(_ descriptor: Int32) { self.descriptor = Atomic(descriptor) }

    deinit { release() }

    var isReleased: Bool { descriptor.load(ordering: .acquiring) < 0 }

    /// Releases the lock, once.
    ///
    /// - Parameter last: Called before, while the lock is held.
    func release(_ last: () -> Void = {}) {
        let held = descriptor.exchange(-1, ordering: .acquiringAndReleasing)
        if held < 0 { return }
        last()
        close(held)
    }
}

/// The lock of the store whose caches are shared with other nodes: one store of one process at a time.
///
/// A second one would mark messages as read that this one has not applied. It is released while the store is suspended, and a store that
/// takes it in that time puts another name into the file.
package final class SharingLock: Sendable {
    private struct State {
        var count = 0
        var held: HeldLock?
    }

    private let file: LockFile?
    private let name = Data(UUID().uuidString.utf8)
    private let state = Mutex(State())
    private let lossCount = Atomic(0)

    init(_ path: String?) { file = path.map { LockFile(path: $0 + LockFile.sharingSuffix) } }

    /// How many times another store has had the lock while this one was suspended.
    package var losses: Int { lossCount.load(ordering: .acquiring) }

    /// Takes the lock, again too, and returns whether no other store has it.
    package func take() throws(StoreError) -> Bool {
        guard let file else { return true }
        return try StoreError.translating {
            try state.withLock { state in
                if state.held == nil {
                    guard let held = try file.hold(until: Deadline(in: 0)) else { return false }
                    try name.write(to: URL(fileURLWithPath: file.path))
                    state.held = held
                }
                state.count += 1
                return true
            }
        }
    }

    /// Returns what ``take()`` has taken.
    package func leave() {
        guard let file else { return }
        state.withLock { state in
            state.count -= 1
            if state.count > 0 { return }
            state.held?.release { file.delete() }
            state.held = nil
        }
    }

    /// Releases the lock, at a suspension or the end of the store.
    func pause() {
        state.withLock { state in
            state.held?.release()
            state.held = nil
        }
    }

    /// Takes the lock again, if it was taken before the suspension.
    func resume() {
        guard let file else { return }
        state.withLock { state in
            if state.count == 0 || state.held != nil { return }
            do {
                let held = try file.hold(until: Deadline(in: 0), creates: false)
                if try held != nil && Data(contentsOf: URL(fileURLWithPath: file.path)) == name { state.held = held }
            } catch {}
            if state.held == nil { lossCount.add(1, ordering: .releasing) }
        }
    }
}
