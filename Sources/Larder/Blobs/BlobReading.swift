package import Foundation

/// What was found where a payload should be.
package enum BlobReading: Sendable {
    case bytes(Data)

    /// No such file.
    case missing

    /// A file with another length or checksum, or something that is no file of ours.
    ///
    /// A file that was given up and overwritten while it was read looks like this too: whoever asks has to look at the
    /// row again before the payload counts as damaged.
    case damaged
}
