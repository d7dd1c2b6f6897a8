import Foundation
import Larder
import LarderTestSupport
import Testing

extension BlobFolder {
    /// A folder for spilled values that is not there yet.
    convenience init(in folder: TemporaryFolder, syncs: Bool = false) {
        self.init(path: folder("store.files").path, syncs: syncs)
    }

    /// The same in a folder of a test's own.
    static func inTemporaryFolder() throws -> (TemporaryFolder, BlobFolder) {
        let folder = try TemporaryFolder()
        return (folder, BlobFolder(in: folder))
    }

    func write(_ data: Data, label: BlobLabel = .none) throws(SystemError) -> BlobReference {
        try data.withUnsafeBytes { bytes in Result { () throws(SystemError) in try write(bytes, label: label) } }.get()
    }

    func read(_ reference: BlobReference) throws(SystemError) -> BlobReading {
        try read(reference.name, size: reference.size, checksum: reference.checksum)
    }

    /// The bytes; nil if they are missing or damaged.
    func bytes(_ reference: BlobReference) throws(SystemError) -> Data? {
        if case .bytes(let data) = try read(reference) { return data }
        return nil
    }

    func url(_ reference: BlobReference) throws -> URL {
        URL(fileURLWithPath: try #require(path(of: reference.name)))
    }

    /// Files in it and below it, without the pools.
    var files: Set<String> {
        get throws {
            let names = try FileManager.default.subpathsOfDirectory(atPath: path)
            return Set(
                try names.filter {
                    try FileSystem.status(path + "/" + $0)?.kind == .file && !$0.hasPrefix("pool-")
                })
        }
    }

    /// The names of the pools in it.
    var pools: [String] {
        get throws { try FileSystem.names(in: path).filter { $0.hasPrefix("pool-") } }
    }
}

extension BlobReading {
    var isMissing: Bool { if case .missing = self { true } else { false } }
    var isDamaged: Bool { if case .damaged = self { true } else { false } }
}

/// Bytes that differ from those of another seed.
func noise(_ count: Int, _ seed: UInt64 = 1) -> Data {
    var generator = Seeded(seed)
    var data = Data(capacity: count + 8)
    while data.count < count { withUnsafeBytes(of: generator.next()) { data.append(contentsOf: $0) } }
    return data.prefix(count)
}

/// Makes a link at `path`, in place of what is there.
func link(_ path: String, to target: String) throws {
    try FileSystem.remove(path)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: target)
}
