/// How far a sweep for files that no row names has come.
///
/// It is as good as new in another process: a sweep that does not reach its end costs nothing but its time.
package struct BlobSweep: Sendable {
    /// Files written after this moment, in milliseconds since 1970, stay: their rows may be on their way.
    package let moment: Int64

    /// How many files were deleted.
    package fileprivate(set) var deletedCount = 0

    /// Whether everything was looked at.
    package fileprivate(set) var isDone = false

    /// What is still to be looked into; the first, empty name stands for the folder itself.
    fileprivate var folders = [""]
    fileprivate var current = ""
    fileprivate var names: [String] = []

    package init(olderThan moment: Int64) {
        self.moment = moment
    }
}

extension BlobFolder {
    /// Goes on with a sweep: looks at `count` names, and deletes the old files among them that no row names.
    ///
    /// Pools of dead processes go too. Other things than files stay.
    ///
    /// - Parameter isNamed: Given names, returns those that a row has, as of now and not as of an older snapshot.
    package func sweep(
        _ sweep: inout BlobSweep, atMost count: Int, isNamed: ([String]) throws -> Set<String>
    ) throws {
        guard !sweep.isDone, let root = try opened() else {
            sweep.isDone = true
            return
        }
        var rest = max(count, 1)
        while rest > 0 {
            if sweep.names.isEmpty {
                guard let next = sweep.folders.popLast() else {
                    sweep.isDone = true
                    return
                }
                sweep.current = next
                // A list of names costs a fraction of looking at them; here it counts as one.
                rest -= 1
                sweep.names = try next.isEmpty ? root.names() : root.folder(next)?.names() ?? []
            }
            let names = sweep.names.suffix(max(rest, 1))
            sweep.names.removeLast(names.count)
            rest -= names.count
            guard let folder = try sweep.current.isEmpty ? root : root.folder(sweep.current) else { continue }
            try sweepFiles(&sweep, Array(names), of: folder, isNamed)
        }
    }

    private func sweepFiles(
        _ sweep: inout BlobSweep, _ names: [String], of folder: FileSystem.Folder,
        _ isNamed: ([String]) throws -> Set<String>
    ) throws {
        let isRoot = sweep.current.isEmpty
        let prefix = isRoot ? "" : sweep.current + "/"
        var candidates: [String] = []
        for name in names {
            guard let status = try folder.status(name) else { continue }
            switch status.kind {
            case .folder where isRoot && name.hasPrefix(BlobPool.prefix): try BlobPool.deleteIfDead(name, in: folder)
            case .folder where isRoot: sweep.folders.append(name)
            case .file where status.modifiedMilliseconds < sweep.moment: candidates.append(name)
            default: break
            }
        }
        guard !candidates.isEmpty else { return }
        let named = try isNamed(candidates.map { prefix + $0 })
        for name in candidates where !named.contains(prefix + name) {
            if try folder.delete(name) { sweep.deletedCount += 1 }
        }
    }
}

extension FileStatus {
    /// When it was written, in milliseconds since 1970, never too early.
    ///
    /// A payload is written just before its row, into a file that is used again too. Anybody may set this date.
    fileprivate var modifiedMilliseconds: Int64 {
        let (milliseconds, isTooFar) = Int64(modifiedAt.seconds).multipliedReportingOverflow(by: 1000)
        return isTooFar ? .max : milliseconds.addingSaturated(Int64(modifiedAt.nanoseconds) / 1_000_000 + 1)
    }
}
