internal import Foundation

/// What the contents of a sub-cache are worth: opened under another version, it is purged.
///
/// Versions are compared as UTF-8 bytes.
public struct CacheVersion: Hashable, Sendable {
    /// The text that is compared, and stored.
    package let text: String

    private init(text: String) {
        self.text = text
    }

    /// What is between the parts of a version of several; a text that holds it counts as several parts.
    private static let separator = "\u{1F}"

    /// The text of the version, with a plus between its parts.
    public var description: String {
        text.components(separatedBy: Self.separator).joined(separator: " + ")
    }

    /// Creates a version of the program's own.
    ///
    /// - Parameter string: The text that is compared.
    public init(_ string: String) { self.init(text: string) }

    /// A version of the program's own.
    public static func custom(_ string: String) -> CacheVersion {
        CacheVersion(text: string)
    }

    /// A version that changes with every build of the program.
    ///
    /// It is the main bundle's short version and build number. Where there are none (command line tools, servers, Linux)
    /// it identifies the executable itself: by the build id that the linker wrote, else by a digest of its contents. It
    /// is never empty and the same in every run of one build. Two different builds that use one file purge each other's
    /// sub-caches at every open.
    public static var buildStamp: CacheVersion { CacheVersion(text: BuildStamp.current) }

    /// A version that changes with the user's language and region, for values that depend on them.
    public static var locale: CacheVersion { CacheVersion(text: Locale.current.identifier) }

    /// A version that changes with the operating system's version.
    public static var osVersion: CacheVersion {
        let version = ProcessInfo.processInfo.operatingSystemVersion
        return CacheVersion(text: "\(version.majorVersion).\(version.minorVersion).\(version.patchVersion)")
    }

    /// Returns a version that changes if either of two does.
    ///
    /// - Parameter other: The other version.
    public func and(_ other: CacheVersion) -> CacheVersion {
        CacheVersion(text: text + Self.separator + other.text)
    }

    /// Compares the UTF-8 bytes: canonically equal strings are two versions.
    public static func == (a: CacheVersion, b: CacheVersion) -> Bool {
        a.text.utf8.elementsEqual(b.text.utf8)
    }

    /// Hashes the UTF-8 bytes.
    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
        hasher.combine(UInt8(0xFF))
    }
}

extension CacheVersion: ExpressibleByStringInterpolation, CustomStringConvertible {
    /// The version of the literal's text.
    public init(stringLiteral value: String) {
        self.init(text: value)
    }
}
