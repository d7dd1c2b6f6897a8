internal import Foundation
internal import Larder

/// What `--version` says.
var version: String { "larder \(CacheManager.libraryVersion)" }

/// Says what is wrong, and ends with the status of a command that was called in the wrong way.
func complain(_ text: String) -> Never {
    FileHandle.standardError.write(Data((text + "\n").utf8))
    exit(64)
}
