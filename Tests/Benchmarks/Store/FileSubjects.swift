import Foundation
import LarderStore

/// Values under keys, a file each.
protocol FileSubject {
    func put(_ key: Int64, _ value: Data) throws
    func get(_ key: Int64) throws -> Data?
}

/// Both subjects of the file scenarios, with the same values.
final class FileSubjects {
    static let valueSize = 100_000
    /// The keys that always have a value.
    static let keys = randomKeys(160)

    let plain: PlainFiles
    let stored: StoredFiles

    init(_ folder: URL, _ bench: Subjects) throws {
        plain = PlainFiles(folder.appendingPathComponent("plain").path)
        stored = try StoredFiles(bench.store)
        for key in Self.keys {
            let value = bench.value(Self.valueSize)
            plain.put(key, value)
            try stored.put(key, value)
        }
    }

    static func randomKeys(_ count: Int) -> [Int64] { (0..<count).map { _ in Int64.random(in: 0 ... .max) } }
}

/// The yardstick: files in a folder, each written under a temporary name and renamed, without a sync.
final class PlainFiles: FileSubject {
    private let folder: String

    init(_ folder: String) {
        self.folder = folder
        precondition(mkdir(folder, 0o700) == 0)
    }

    func put(_ key: Int64, _ value: Data) {
        let path = path(key)
        let temporary = path + ".new"
        let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0o600)
        precondition(file >= 0)
        value.withUnsafeBytes { bytes in precondition(write(file, bytes.baseAddress, bytes.count) == bytes.count) }
        close(file)
        precondition(rename(temporary, path) == 0)
    }

    func get(_ key: Int64) -> Data? {
        let file = open(path(key), O_RDONLY)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        precondition(fstat(file, &status) == 0)
        let count = Int(status.st_size)
        guard let bytes = malloc(count) else { return nil }
        precondition(read(file, bytes, count) == count)
        return Data(bytesNoCopy: bytes, count: count, deallocator: .free)
    }

    private func path(_ key: Int64) -> String { "\(folder)/\(key)" }
}

/// A cache of the store whose values are files.
final class StoredFiles: FileSubject {
    private let store: Store
    private let rows: CacheRows

    init(_ store: Store) throws {
        self.store = store
        rows = try store.open(CacheDeclaration(name: "files", version: "1", codec: "data", ageRule: .unlimited))
    }

    func put(_ key: Int64, _ value: Data) throws {
        let entry = EntryWrite(key: .integer(key), payload: value, writtenAt: store.time.now())
        try rows.run(.put([entry], if: .always))
    }

    func get(_ key: Int64) throws -> Data? { try rows.row(.integer(key))?.payload }
}
