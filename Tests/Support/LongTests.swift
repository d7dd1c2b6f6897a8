import Foundation

/// Tests that take minutes, much memory or a tool such as strace.
///
/// `make release` and `make torture` run them, the short tests of each change do not.
package enum LongTests {
    /// A Boolean value that indicates whether they run: LARDER_LONG_TESTS is 1.
    package static let areEnabled = ProcessInfo.processInfo.environment["LARDER_LONG_TESTS"] == "1"
}
