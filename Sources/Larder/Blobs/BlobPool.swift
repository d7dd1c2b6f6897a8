internal import Synchronization

/// Files that were given up and wait to be overwritten: creating one costs ten times what its bytes cost.
///
/// The pool is a folder of this object's own, `pool-` and random digits, which it holds locked. One that is not locked
/// was left by a dead process. Whoever empties it nevertheless does no harm: a file that cannot be had is made anew.
final class BlobPool: Sendable {
    static let countLimit = 32
    static let byteLimit: Int64 = 16 << 20
    static let prefix = "pool-"

    struct Member {
        let name: String
        let size: Int64
    }

    /// What is in the pool.
    struct Figures: Equatable {
        var count = 0
        var bytes: Int64 = 0

        /// How many files were taken out again.
        var taken = 0
    }

    private struct Place {
        let parent: FileSystem.Folder
        let folder: FileSystem.Folder
        let name: String
    }

    private struct State {
        var place: Place?
        var members: [Member] = []
        var figures = Figures()
        var nextName = 0

        /// Forgets what is in the pool.
        mutating func clear() {
            place = nil
            members = []
            figures.count = 0
            figures.bytes = 0
        }

        var hasRoom: Bool { figures.count < BlobPool.countLimit && figures.bytes < BlobPool.byteLimit }
    }

    /// Not held while the file system works.
    private let state = Mutex(State())

    var figures: Figures { state.withLock { $0.figures } }

    /// Takes out the file that fits `size` best: the smallest that is large enough, else the largest.
    func take(for size: Int64) -> (folder: FileSystem.Folder, member: Member)? {
        state.withLock { state in
            guard let folder = state.place?.folder else { return nil }
            let best = state.members.indices.min { a, b in
                let (a, b) = (state.members[a].size, state.members[b].size)
                return (a >= size) == (b >= size) ? (a >= size) == (a < b) && a != b : a >= size
            }
            guard let best else { return nil }
            let member = state.members.remove(at: best)
            state.figures.count -= 1
            state.figures.bytes -= member.size
            state.figures.taken += 1
            return (folder, member)
        }
    }

    /// Moves the file `name` of `folder` here, or deletes it: if there is no room, or if somebody else may still read it
    /// under another name or by its URL.
    func add(_ name: String, of folder: FileSystem.Folder, in parent: FileSystem.Folder) throws(SystemError) {
        do throws(SystemError) {
            if try keep(name, of: folder, in: parent) { return }
        } catch {
            // A full volume has no room for a pool either. What hinders the deletion as well is thrown there.
        }
        try folder.delete(name)
    }

    /// False if the file stays where it is.
    private func keep(
        _ name: String, of folder: FileSystem.Folder, in parent: FileSystem.Folder
    ) throws(SystemError) -> Bool {
        guard let pool = try place(in: parent)?.folder else { return false }
        let pooled = state.withLock { state in
            state.nextName += 1
            return String(state.nextName)
        }
        guard try folder.move(name, to: pool, as: pooled) else {
            // The file is gone, or the pool is.
            if try pool.isDeleted() { state.withLock { if $0.place?.folder === pool { $0.clear() } } }
            return false
        }
        // Looked at only now that nobody gets at it by its name.
        let status = try pool.status(pooled)
        guard let status, status.kind == .file, status.nameCount == 1, status.isWritable,
            keep(Member(name: pooled, size: status.size), in: pool)
        else {
            try pool.delete(pooled)
            return true
        }
        return true
    }

    private func keep(_ member: Member, in pool: FileSystem.Folder) -> Bool {
        state.withLock { state in
            guard state.place?.folder === pool, state.figures.count < Self.countLimit,
                member.size <= Self.byteLimit - state.figures.bytes
            else { return false }
            state.members.append(member)
            state.figures.count += 1
            state.figures.bytes += member.size
            return true
        }
    }

    /// The pool's folder, made if there is none yet; nil if the pool is full, or if a sweep took the new one.
    private func place(in parent: FileSystem.Folder) throws(SystemError) -> Place? {
        let (place, hasRoom) = state.withLock { ($0.place, $0.hasRoom) }
        if place != nil || !hasRoom { return hasRoom ? place : nil }
        let name = Self.prefix + BlobName.hex(.random(in: 0 ... .max), count: 16)
        // Between making and locking it, a sweep may take it for a dead one's.
        guard try parent.makeFolder(name), let folder = try parent.folder(name), try folder.lock() else { return nil }
        let made = Place(parent: parent, folder: folder, name: name)
        let kept = state.withLock { state in
            if state.place == nil { state.place = made }
            return state.place
        }
        if kept?.folder !== folder { try parent.deleteEmptyFolder(name) }
        return kept
    }

    /// Deletes the files and the folder; the next file given up makes another.
    ///
    /// A file that is being overwritten at this moment is not in the pool any more, and stays.
    func empty() throws(SystemError) {
        let old = state.withLock { state in
            defer { state.clear() }
            return (state.place, state.members)
        }
        guard let place = old.0 else { return }
        for member in old.1 { try place.folder.delete(member.name) }
        try place.parent.deleteEmptyFolder(place.name)
    }

    /// Deletes the pool `name` in `parent` if no living process has it.
    static func deleteIfDead(_ name: String, in parent: FileSystem.Folder) throws(SystemError) {
        guard let folder = try parent.folder(name), try folder.lock() else { return }
        for name in try folder.names() where try folder.status(name)?.kind != .folder { try folder.delete(name) }
        try parent.deleteEmptyFolder(name)
    }
}
