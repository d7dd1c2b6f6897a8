#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

extension CacheError {
    /// Translates a failure of the file system, met while doing what `action` says ("cannot open …").
    package init(_ action: String, _ error: SystemError) {
        self.init(error.cacheCode, "\(action): \(error.remedy)", underlying: error)
    }
}

extension SystemError {
    fileprivate var cacheCode: CacheError.Code {
        switch number {
        case ENOSPC, EDQUOT: .storageFull
        case ENAMETOOLONG: .invalidName
        default: .storageUnavailable
        }
    }

    fileprivate var remedy: String {
        switch number {
        case ENOSPC, EDQUOT: "the volume is full; make room and try again"
        case ENAMETOOLONG: "the name is too long for the file system; choose a shorter one"
        case EACCES, EPERM: "permission is denied; check the owner and the mode of the folder and its files"
        case EROFS: "the volume cannot be written; open the store read-only or choose another place"
        case ELOOP: "a symbolic link stands in its place, and links are not followed; name the real file"
        case EMFILE, ENFILE: "too many files are open; close some and try again"
        case ENOTDIR: "a part of the path is not a folder"
        case ENOENT: "a folder of the path is missing"
        default: "the file system refuses (\(String(cString: strerror(number))))"
        }
    }
}
