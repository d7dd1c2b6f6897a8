import Foundation
package import Larder
import LarderSQLite

extension CacheManager {
    /// What rows and files say differently of large values, a sentence each.
    ///
    /// - Parameter isSwept: Whether what no row names is deleted first, however new it is: what maintenance does an hour
    ///   later.
    package func fileProblems(isSwept: Bool = false) throws -> [String] {
        guard let blobs = try store().present().blobs else { return [] }
        if isSwept { try sweep(blobs) }
        let (named, found) = (try namedFiles(), try Self.files(in: blobs.path))
        var problems: [String] = []
        for (name, size) in found {
            if name.hasPrefix("pool-") {
                if isSwept { problems.append("\(name) was left in a pool") }
            } else if named[name] == nil {
                problems.append("no row names \(name), \(size) bytes")
            }
        }
        for (name, size) in named where found[name] != size {
            problems.append("a row says \(size) bytes of \(name), which has \(found[name].map(String.init) ?? "none")")
        }
        return problems.sorted()
    }

    private func sweep(_ blobs: BlobFolder) throws {
        let store = try store()
        var sweep = BlobSweep(olderThan: .max)
        while !sweep.isDone {
            try blobs.sweep(&sweep, atMost: 1000) { names in
                try store.read { (c) throws(SQLiteError) in try c.named(names) }
            }
        }
    }

    /// The files that rows name, with the lengths that they say; rows of retired generations too.
    private func namedFiles() throws -> [String: Int64] {
        let store = try store()
        var named: [String: Int64] = [:]
        var last = Int64.min
        while true {
            let after = last
            let rows = try store.read { (c) throws(SQLiteError) in try c.checkedRows(after: after, bytes: 1 << 20) }
            guard let end = rows.last else { return named }
            last = end.row.facts.id
            for row in rows.map(\.row) {
                if let file = row.facts.file { named[file] = row.facts.size - Int64(row.extended?.count ?? 0) }
            }
        }
    }

    /// The files below a folder, with their lengths.
    private static func files(in folder: String) throws -> [String: Int64] {
        let manager = FileManager.default
        guard manager.fileExists(atPath: folder) else { return [:] }
        var files: [String: Int64] = [:]
        for name in try manager.subpathsOfDirectory(atPath: folder) {
            let attributes = try manager.attributesOfItem(atPath: folder + "/" + name)
            guard attributes[.type] as? FileAttributeType == .typeRegular else { continue }
            files[name] = Int64(attributes[.size] as? Int ?? -1)
        }
        return files
    }
}
