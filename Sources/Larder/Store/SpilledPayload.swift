package import Foundation
internal import Synchronization

/// A payload that is too large for a row, on its way into a file.
///
/// The file is written before the transaction that names it, by the thread that wants it. If the store turns out to
/// stand elsewhere by then, it is written again there.
@usableFromInline
package final class SpilledPayload: Sendable {
    private let payload: Data
    private let label: BlobLabel

    /// The file in the folder of the database that it was written for last.
    private let written: Mutex<(blobs: BlobFolder, reference: BlobReference, moment: Int64)?> = Mutex(nil)

    /// How long, in milliseconds, no sweep takes a file for one that nobody is going to name; a share of its patience.
    private static let safeAge: Int64 = 600_000

    package init(_ payload: Data, label: BlobLabel) {
        self.payload = payload
        self.label = label
    }

    /// The file that a row of this folder can name, written unless that was done.
    package func file(in blobs: BlobFolder) throws(SystemError) -> StoredFile {
        let known = written.withLock { $0 }
        if let known, known.blobs === blobs, try isThere(known.reference, known.moment) {
            return StoredFile(known.reference)
        }
        discard()
        let result: Result<BlobReference, SystemError> = payload.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in try blobs.write(bytes, label: label) }
        }
        let reference = try result.get()
        written.withLock { $0 = (blobs, reference, SystemClock.now()) }
        return StoredFile(reference)
    }

    /// Whether the file waits where it was written: after a long wait, or a jump of the clock, a sweep may have met it.
    private func isThere(_ reference: BlobReference, _ moment: Int64) throws(SystemError) -> Bool {
        if SystemClock.now().subtractingSaturated(moment).magnitude < UInt64(Self.safeAge) { return true }
        return try written.withLock({ $0?.blobs })?.has(reference.name) == true
    }

    /// Gives the file up: no row came to name it.
    @usableFromInline
    package func discard() {
        guard let old = written.withLock({ $0.take() }) else { return }
        do throws(SystemError) {
            try old.blobs.giveUp(old.reference.name)
        } catch {
            // A later sweep finds it.
        }
    }
}

extension StoredFile {
    fileprivate init(_ reference: BlobReference) {
        self.init(name: reference.name, checksum: reference.checksum)
    }
}
