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

    /// The age, in milliseconds, up to which no sweep takes a file for one that nobody is going to name.
    ///
    /// A share of its patience. A file that has waited longer, or seems to since the clock was set, is written anew.
    private static let safeAge: UInt64 = 600_000

    package init(_ payload: Data, label: BlobLabel) {
        self.payload = payload
        self.label = label
    }

    /// The file that a row of this folder can name, written unless that was done.
    package func file(in blobs: BlobFolder) throws(SystemError) -> StoredFile {
        let age = { (moment: Int64) in SystemClock.now().subtractingSaturated(moment).magnitude }
        if let written = written.withLock({ $0 }), written.blobs === blobs, age(written.moment) < Self.safeAge {
            return StoredFile(written.reference)
        }
        discard()
        let result: Result<BlobReference, SystemError> = payload.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in try blobs.write(bytes, label: label) }
        }
        let reference = try result.get()
        written.withLock { $0 = (blobs, reference, SystemClock.now()) }
        return StoredFile(reference)
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
