#if os(Linux)
import Foundation
import Larder
import LarderTestSupport
import Testing

/// Programs that the compiler accepts, and programs that it refuses.
struct CompilerTests {
    private static let opening = """
        import Larder
        struct Note: Codable, Hashable, Sendable { var text = "" }
        final class Open: Codable, Hashable {
            var text = ""
            static func == (a: Open, b: Open) -> Bool { a.text == b.text }
            func hash(into hasher: inout Hasher) { hasher.combine(text) }
        }
        func use(_ manager: CacheManager, _ task: @Sendable () -> Void) throws {

        """

    static let caches = [
        "let cache: Cache<Note, Note> = try manager.cache(named: \"a\", version: \"1\", maxAge: .days(1))",
        "let memory = MemoryCache<Note, Note>()",
    ]

    @Test(
        .enabled(if: !ChildProcess.isSanitized, "the modules are built with the sanitizer's lock"), arguments: caches)
    func `keys and values that are not Sendable are refused`(line: String) throws {
        let accepted = try SmallProgram.check(Self.opening + line + "\n}\n")
        #expect(accepted.status == 0, "\(accepted.text)")
        for types in ["<Note, Open>", "<Open, Note>"] {
            let refused = try SmallProgram.check(
                Self.opening + line.replacingOccurrences(of: "<Note, Note>", with: types) + "\n}\n")
            #expect(refused.status != 0)
            #expect(refused.text.contains("'Open' does not conform to the 'Sendable' protocol"), "\(refused.text)")
        }
    }
}
#endif
