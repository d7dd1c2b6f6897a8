/// Safety: The bytes are the caller's and are read inside the call only, by the system's `write`.
extension BlobFolder {
    /// Writes a payload to a file of a fresh name, which nobody knows but the caller.
    ///
    /// If it throws, nothing is left of it. Without room the pool is emptied, and the write tried again, before it
    /// throws.
    package func write(
        _ bytes: UnsafeRawBufferPointer, label: BlobLabel = .none
    ) throws(SystemError) -> BlobReference {
        let checksum = Self.checksum(bytes)
        var attempts = 4
        while true {
            let name = BlobName(label)
            do throws(SystemError) {
                try write(bytes, name)
                return BlobReference(name: name.text, size: Int64(bytes.count), checksum: checksum)
            } catch {
                attempts -= 1
                // A folder was deleted on the way, or something else stands where it should be: other names, other folders.
                let isWorthIt = error.isAboutAName || error.isAboutAnObstacle
                let mayMakeRoom = error.isAboutRoom && pool.figures.count > 0
                guard attempts > 0, isWorthIt || mayMakeRoom else { throw error }
                if mayMakeRoom { try pool.empty() }
            }
        }
    }

    private func write(_ bytes: UnsafeRawBufferPointer, _ name: BlobName) throws(SystemError) {
        let (root, isNew) = try openedOrMade()
        let (folder, isNewFolder) = try openedOrMade(name.folder, in: root)
        if try !recycle(for: bytes, as: name, in: folder) {
            let file = try folder.makeFile(name.file)
            try finish(file, bytes, orDelete: name.file, of: folder)
        }
        guard syncs else { return unsynced.add(name) }
        do throws(SystemError) {
            try folder.sync()
            try unsynced.syncFolders(folder, isNewFolder, in: root, isNew)
        } catch {
            try folder.delete(name.file)
            throw error
        }
    }

    private func openedOrMade() throws(SystemError) -> (FileSystem.Folder, isNew: Bool) {
        if let folder = try opened() { return (folder, false) }
        try FileSystem.makeFolders(path)
        if let folder = try opened() { return (folder, true) }
        throw .missing(path)
    }

    private func openedOrMade(
        _ name: String, in root: FileSystem.Folder
    ) throws(SystemError) -> (FileSystem.Folder, isNew: Bool) {
        if let folder = try root.folder(name) { return (folder, false) }
        let isNew = try root.makeFolder(name)
        if let folder = try root.folder(name) { return (folder, isNew) }
        throw .missing(root.path + "/" + name)
    }

    /// Overwrites a file of the pool and moves it to its new name; false if there is none to be had.
    private func recycle(
        for bytes: UnsafeRawBufferPointer, as name: BlobName, in folder: FileSystem.Folder
    ) throws(SystemError) -> Bool {
        guard let (place, member) = pool.take(for: Int64(bytes.count)) else { return false }
        guard let file = try openedForOverwriting(member.name, in: place) else { return false }
        try finish(file, bytes, orDelete: member.name, of: place, oldSize: member.size)
        do throws(SystemError) {
            if try place.move(member.name, to: folder, as: name.file) { return true }
        } catch {
            try place.delete(member.name)
            throw error
        }
        try place.delete(member.name)
        return false
    }

    /// Nil if it cannot be had, whatever the cause: a new file will show whether that is one for the caller to know.
    private func openedForOverwriting(
        _ name: String, in place: FileSystem.Folder
    ) throws(SystemError) -> FileSystem.OpenFile? {
        do throws(SystemError) {
            return try place.file(name, .overwriting)
        } catch {
            try place.delete(name)
            return nil
        }
    }

    /// Writes a file whole, or deletes it.
    private func finish(
        _ file: borrowing FileSystem.OpenFile, _ bytes: UnsafeRawBufferPointer, orDelete name: String,
        of folder: FileSystem.Folder, oldSize: Int64 = 0
    ) throws(SystemError) {
        do throws(SystemError) {
            try file.write(bytes)
            if oldSize > Int64(bytes.count) { try file.truncate(to: bytes.count) }
            if syncs { try file.sync() }
        } catch {
            try folder.delete(name)
            throw error
        }
    }

    /// Lets go of a file that no committed row names any more: it is recycled or deleted.
    ///
    /// Nothing happens if it is gone already. If it throws, the file stays, as one that no row names.
    package func giveUp(_ name: String) throws(SystemError) {
        guard let name = BlobName(name), let root = try opened() else { return }
        unsynced.remove(name)
        do throws(SystemError) {
            guard let folder = try root.folder(name.folder) else { return }
            try pool.add(name.file, of: folder, in: root)
        } catch {
            guard error.isAboutAnObstacle else { throw error }
            return
        }
    }
}
