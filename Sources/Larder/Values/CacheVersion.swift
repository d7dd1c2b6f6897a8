internal import Foundation

/// The version of a cache's contents: opening the cache with another version purges it.
///
/// Versions are compared as UTF-8 bytes.
public struct CacheVersion: Hashable, Sendable {
    /// The text that is compared and stored.
    package let text: String

    private init(text: String) {
        self.text = text
    }

    /// The separator between the parts of a combined version.
    ///
    /// A text that contains it counts as several parts.
    private static let separator = "\u{1F}"

    /// The text of the version, with a plus sign between its parts.
    public var description: String {
        text.components(separatedBy: Self.separator).joined(separator: " + ")
    }

    /// Creates a version from a text of your own.
    ///
    /// - Parameter string: The text that is compared.
    public init(_ string: String) { self.init(text: string) }

    /// Returns a version from a text of your own.
    ///
    /// - Parameter string: The text that is compared.
    /// - Returns: The version.
    public static func custom(_ string: String) -> CacheVersion {
        CacheVersion(text: string)
    }

    /// A version that changes with every build of the program.
    ///
    /// It is the short version and the build number of the main bundle. Without these (command-line tools, servers,
    /// Linux), it identifies the executable: by the build id that the linker wrote, else by a digest of its contents.
    /// It is never empty, and the same in every run of one build.
    ///
    /// - Warning: Two different builds that use one file purge each other's caches at every opening.
    public static var buildStamp: CacheVersion { CacheVersion(text: BuildStamp.current) }

    /// A version that changes with the user's language and region, for values that depend on them.
    public static var locale: CacheVersion { CacheVersion(text: Locale.current.identifier) }

    /// A version that changes with the version of the operating system.
    public static var osVersion: CacheVersion {
        let version = ProcessInfo.processInfo.operatingSystemVersion
        return CacheVersion(text: "\(version.majorVersion).\(version.minorVersion).\(version.patchVersion)")
    }

    /// Returns a version that changes if this or another version changes.
    ///
    /// - Parameter other: The other version.
    /// - Returns: The combined version.
    public func and(_ other: CacheVersion) -> CacheVersion {
        CacheVersion(text: text + Self.separator + other.text)
    }

    /// Returns whether the UTF-8 bytes of two versions are equal: canonically equal strings are two versions.
    ///
    /// - Parameters:
    ///   - a: A version.
    ///   - b: Another version.
    /// - Returns: True if the bytes are equal.
    public static func == (a: CacheVersion, b: CacheVersion) -> Bool {
        a.text.utf8.elementsEqual(b.text.utf8)
    }

    /// Hashes the UTF-8 bytes of the version.
    ///
    /// - Parameter hasher: The hasher to use.
    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
        hasher.combine(UInt8(0xFF))
    }
}

extension CacheVersion: ExpressibleByIntegerLiteral {
    /// Creates a version from an integer literal: 3 is the version "3".
    ///
    /// - Parameter value: The number.
    public init(integerLiteral value: Int) { self.init(text: String(value)) }
}

extension CacheVersion: ExpressibleByStringInterpolation, CustomStringConvertible {
    /// Creates a version from a string literal.
    ///
    /// - Parameter value: The text that is compared.
    public init(stringLiteral value: String) {
        self.init(text: value)
    }
}
