import Larder
import LarderTestSupport
import Testing

struct LarderCommandTests {
    @Test func `it says its version`() throws {
        let (status, lines) = try ChildProcess("larder", ["--version"]).finish()
        #expect(status == 0)
        #expect(lines == ["larder \(CacheManager.libraryVersion)"])
    }

    @Test(arguments: [[], ["--help"], ["help"]])
    func `it says how it is used`(arguments: [String]) throws {
        let (status, lines) = try ChildProcess("larder", arguments).finish()
        #expect(status == 0)
        #expect(lines.contains("USAGE"))
    }

    @Test func `a verb that is not there is a wrong call`() throws {
        let (status, lines) = try ChildProcess("larder", ["nonsense"]).finish()
        #expect(status == 64)
        #expect(lines == [])
    }
}
