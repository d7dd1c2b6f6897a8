internal import Foundation
internal import LarderStore

// Safety: The bytes of the executable are those of a `Data` that lives as long as the closure that reads them.

/// A text that distinguishes one build of the program from another.
package enum BuildStamp {
    /// The stamp of the running program, which doesn't change while it runs.
    static let current = bundleStamp ?? executableStamp ?? unidentified

    /// “1.2 (345)”, for programs in a bundle.
    private static var bundleStamp: String? {
        stamp(
            version: Bundle.main.object(forInfoDictionaryKey: "CFBundleShortVersionString") as? String,
            build: Bundle.main.object(forInfoDictionaryKey: "CFBundleVersion") as? String)
    }

    package static func stamp(version: String?, build: String?) -> String? {
        switch (version, build) {
        case (let version?, let build?): "\(version) (\(build))"
        case (let version?, nil): version
        case (nil, let build?): "(\(build))"
        case (nil, nil): nil
        }
    }

    private static var executableStamp: String? {
        #if os(Linux)
        // The running file, even if another one is at its path by now.
        let path = "/proc/self/exe"
        #else
        guard let path = Bundle.main.executablePath else { return nil }
        #endif
        do {
            return try stamp(executable: path)
        } catch {
            return nil
        }
    }

    /// Returns the identifier that the linker has written into the executable, else a digest of the whole file.
    package static func stamp(executable path: String) throws -> String {
        // Xcode can leave the executable of a debug build as it is, and keep the code in a library next to it.
        let stamp = try stamp(file: path)
        do { return "\(stamp) \(try self.stamp(file: path + ".debug.dylib"))" } catch { return stamp }
    }

    private static func stamp(file path: String) throws -> String {
        // Mapped: an identifier stands soon after the file's header, and no more is read then.
        let file = try Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped)
        return file.withUnsafeBytes { bytes in
            let head = UnsafeRawBufferPointer(rebasing: bytes.prefix(1 << 20))
            if let id = ELFFile(bytes: head)?.buildID { return "build-id:" + id }
            if let id = MachOFile(bytes: head)?.identifier { return "uuid:" + id }
            return digest(bytes)
        }
    }

    /// Returns a checksum of 64 bits and the length.
    private static func digest(_ bytes: UnsafeRawBufferPointer) -> String {
        "digest:\(Checksum.of(bytes).digits)-\(bytes.count)"
    }

    /// The stamp if the program cannot be read: constant, so that at least no start purges a cache.
    private static let unidentified = "unidentified build"
}
