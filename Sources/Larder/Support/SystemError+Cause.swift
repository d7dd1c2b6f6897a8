#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

extension SystemError {
    /// Whether the volume, or what its owner may use of it, is full.
    package var isAboutRoom: Bool { number == ENOSPC || number == EDQUOT }

    /// Whether something that must not be there stands at the path, or on the way to it.
    package var isAboutAnObstacle: Bool { number == ENOTDIR || number == ELOOP || number == EMLINK }

    /// Whether a folder on the way is missing, or the name is taken.
    package var isAboutAName: Bool { number == ENOENT || number == EEXIST }

    /// What should be at `path` is not.
    package static func missing(_ path: String) -> SystemError { SystemError(number: ENOENT, call: "open", path: path) }

    /// There is not so much memory as the file at `path` takes.
    package static func outOfMemory(_ path: String) -> SystemError {
        SystemError(number: ENOMEM, call: "read", path: path)
    }
}
