import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

// By other names, inside a type that has methods of the same.
private let systemWrite = write
private let systemRead = read

/// A file for each value, as one would write it without a library: to another name first, so that it is whole.
final class FileFolder {
    private let folder: String

    init(_ folder: String) {
        self.folder = folder
        mkdir(folder, 0o700)
    }

    func write(_ data: Data, _ key: Int) {
        let temporary = folder + "/temporary"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        data.withUnsafeBytes { precondition(systemWrite(descriptor, $0.baseAddress, $0.count) == $0.count) }
        close(descriptor)
        precondition(rename(temporary, folder + "/\(key)") == 0)
    }

    func read(_ key: Int) -> Data? {
        let descriptor = open(folder + "/\(key)", O_RDONLY)
        if descriptor < 0 { return nil }
        defer { close(descriptor) }
        var status = stat()
        precondition(fstat(descriptor, &status) == 0)
        let count = Int(status.st_size)
        let buffer = UnsafeMutableRawPointer.allocate(byteCount: max(1, count), alignment: 16)
        precondition(systemRead(descriptor, buffer, count) == count)
        return Data(bytesNoCopy: buffer, count: count, deallocator: .custom { pointer, _ in pointer.deallocate() })
    }
}
