internal import Synchronization

/// What is not known to be on the disk yet, and which folders are.
final class BlobSyncList: Sendable {
    private struct State {
        var names: Set<BlobName> = []

        /// Folders of which the folder above was synced after they were made.
        var durable: Set<FileIdentity> = []
    }

    /// Not held while the file system works.
    private let state = Mutex(State())

    func add(_ name: BlobName) { state.withLock { _ = $0.names.insert(name) } }

    func add(_ names: Set<BlobName>) { state.withLock { $0.names.formUnion(names) } }

    func remove(_ name: BlobName) { state.withLock { _ = $0.names.remove(name) } }

    func takeAll() -> Set<BlobName> {
        state.withLock { state in
            defer { state.names = [] }
            return state.names
        }
    }

    var count: Int { state.withLock { $0.names.count } }

    /// Makes sure that the way to what is in `folder` is on the disk.
    ///
    /// A folder that another process made need not be, so each one is looked after once.
    func syncFolders(
        _ folder: FileSystem.Folder, _ isNewFolder: Bool, in root: FileSystem.Folder, _ isNewRoot: Bool
    ) throws(SystemError) {
        let (own, above) = try (folder.status().identity, root.status().identity)
        let (knowsOwn, knowsAbove) = state.withLock { state in
            (state.durable.contains(own) && !isNewFolder, state.durable.contains(above) && !isNewRoot)
        }
        if !knowsOwn { try root.sync() }
        if !knowsAbove { try FileSystem.sync(root.parentPath) }
        if knowsOwn && knowsAbove { return }
        state.withLock { state in
            // Folders that were deleted since are not worth remembering.
            if state.durable.count > 1000 { state.durable = [] }
            state.durable.formUnion([own, above])
        }
    }
}

extension BlobFolder {
    /// Brings to the disk what was written since the last call, and the folders it lies in.
    ///
    /// Whoever writes the log of the rows into their database calls it first. What could not be synced is tried again by
    /// the next call. Returns once all of it is there, whoever brought it there.
    package func sync() throws(SystemError) {
        try syncing.withLock { _ throws(SystemError) in try syncTaken() }
    }

    private func syncTaken() throws(SystemError) {
        let names = unsynced.takeAll()
        guard !names.isEmpty else { return }
        do throws(SystemError) {
            guard let root = try opened() else { return }
            for (name, files) in Dictionary(grouping: names, by: \.folder) {
                guard let folder = try root.folder(name) else { continue }
                // One that is gone was given up meanwhile.
                for file in files { try folder.file(file.file, .reading)?.sync() }
                try folder.sync()
            }
            try root.sync()
            try FileSystem.sync(root.parentPath)
        } catch {
            unsynced.add(names)
            throw error
        }
    }

    /// How many files ``sync()`` would bring to the disk.
    package var unsyncedCount: Int { unsynced.count }
}
