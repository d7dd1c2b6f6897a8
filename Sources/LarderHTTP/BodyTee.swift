import Foundation
internal import Larder

/// Hands on a body that is still on its way, and keeps it in a file until it is whole.
///
/// What is not taken to its end, or ends with an error, is deleted.
actor BodyTee {
    private let parts: AsyncThrowingStream<Data, any Error>
    private let limit: Int
    private let file = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
    private var size = 0
    private var isOpen = true
    private let keep: @Sendable (HTTPCache.Body) async -> Void
    private let leave: @Sendable () -> Void

    /// - Parameters:
    ///   - limit: The greatest number of bytes that are kept.
    ///   - keep: Called once if the body is whole.
    ///   - leave: Called once if it is not.
    init(
        _ parts: AsyncThrowingStream<Data, any Error>, limit: Int,
        keep: @escaping @Sendable (HTTPCache.Body) async -> Void, leave: @escaping @Sendable () -> Void
    ) {
        (self.parts, self.limit, self.keep, self.leave) = (parts, limit, keep, leave)
    }

    deinit {
        if isOpen { leave() }
        unlink(file.path)
    }

    /// Returns the next part, which is kept too; nil at the end of the body.
    func next() async throws -> Data? {
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
        guard isOpen else { return }
        let (path, isFirst) = (file.path, size == 0)
        size += part.count
        if size > limit { return abandon() }
        let isWritten = await offload {
            guard let stream = fopen(path, isFirst ? "wbx" : "ab") else { return false }
            let count = part.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, stream) }
            return fclose(stream) == 0 && count == part.count
        }
        if !isWritten { abandon() }
    }

    private func end() async {
        guard isOpen else { return }
        isOpen = false
        await keep(size == 0 ? .bytes(Data()) : .file(file, size: size))
    }

    private func abandon() {
        if isOpen { leave() }
        isOpen = false
    }
}
