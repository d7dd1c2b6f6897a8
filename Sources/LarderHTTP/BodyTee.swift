import Foundation
internal import Larder

/// Hands on a body that is still on its way, and keeps it in a file until it is whole.
///
/// What is not taken to its end, or ends with an error, is deleted. It has one reader: if two take parts at once, nothing is kept.
actor BodyTee {
    private let parts: AsyncThrowingStream<Data, any Error>
    private let limit: Int
    private let file = BodyFile()
    private var size = 0
    private var isOpen = true
    private var isReading = false
    private let keep: @Sendable (HTTPCache.Body) async -> Void

    /// - Parameters:
    ///   - limit: The greatest number of bytes that are kept.
    ///   - keep: Called once if the body is whole.
    init(
        _ parts: AsyncThrowingStream<Data, any Error>, limit: Int,
        keep: @escaping @Sendable (HTTPCache.Body) async -> Void
    ) {
        (self.parts, self.limit, self.keep) = (parts, limit, keep)
    }

    /// Returns the next part, which is kept too; nil at the end of the body.
    func next() async throws -> Data? {
        if isReading { abandon() }
        isReading = true
        defer { isReading = false }
        do {
            var iterator = parts.makeAsyncIterator()
            let part = try await iterator.next()
            // A stream whose reader was cancelled seems to end.
            try Task.checkCancellation()
            if let part { await append(part) } else { await end() }
            return part
        } catch {
            abandon()
            throw error
        }
    }

    private func append(_ part: Data) async {
        guard isOpen, !part.isEmpty else { return }
        let (path, flags) = (
            file.url.path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | (size == 0 ? O_CREAT | O_EXCL : O_APPEND)
        )
        size += part.count
        if size > limit { return abandon() }
        let isWritten = await offload {
            let descriptor = path.withCString { open($0, flags, 0o600) }
            guard descriptor >= 0 else { return false }
            guard let stream = fdopen(descriptor, "ab") else {
                close(descriptor)
                return false
            }
            let count = part.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, stream) }
            return fclose(stream) == 0 && count == part.count
        }
        if !isWritten { abandon() }
    }

    private func end() async {
        guard isOpen else { return }
        isOpen = false
        await keep(size == 0 ? .bytes(Data()) : .file(file.url, size: size))
    }

    private func abandon() { isOpen = false }
}

/// A body that is written to a file of its own, which is deleted unless it was moved.
final class BodyFile: Sendable {
    private static let prefix = "larder-body-"

    let url = FileManager.default.temporaryDirectory
        .appendingPathComponent("\(prefix)\(getpid())-\(UUID().uuidString)")

    /// Creates no file yet.
    init() {}

    convenience init(_ bytes: Data) async throws {
        self.init()
        let url = url
        try await offload { try bytes.write(to: url, options: .withoutOverwriting) }
    }

    deinit { unlink(url.path) }

    /// Deletes the files of processes that were killed: those that were not written for a day.
    static func deleteLeft() async {
        await offload {
            let (manager, folder) = (FileManager.default, FileManager.default.temporaryDirectory)
            func names() -> [String] {
                do { return try manager.contentsOfDirectory(atPath: folder.path) } catch { return [] }
            }
            for name in names() where name.hasPrefix(prefix) {
                let file = folder.appendingPathComponent(name).path
                do {
                    let written = try manager.attributesOfItem(atPath: file)[.modificationDate] as? Date
                    if let written, written.timeIntervalSinceNow < -86_400 { unlink(file) }
                } catch {
                    // It has gone in the meantime.
                }
            }
        }
    }
}
