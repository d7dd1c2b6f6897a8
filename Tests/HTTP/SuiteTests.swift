import Foundation
import Testing

/// Cases in the format of the public suite.
struct SuiteTests {
    /// Cases of our own, which also show that the runner can fail.
    private static let cases = """
        [{"name": "own", "id": "own", "tests": [
          {"id": "fresh", "requests": [
            {"response_headers": [["Cache-Control", "max-age=60"], ["Date", 0]], "setup": true, "pause_after": true},
            {"expected_type": "cached", "expected_response_headers": [["Age", ">", 2], "Date"]}]},
          {"id": "stale", "requests": [
            {"response_headers": [["Expires", 2], ["Date", 0], ["ETag", "\\"a\\""]], "pause_after": true},
            {"expected_type": "etag_validated", "response_headers": [["ETag", "\\"a\\""]], "expected_status": 200}]},
          {"id": "unsafe", "requests": [
            {"filename": "a", "response_headers": [["Cache-Control", "max-age=60"]], "setup": true},
            {"request_method": "POST", "request_body": "x", "response_headers": [["Location", "a"]],
             "magic_locations": true, "setup": true},
            {"filename": "a", "expected_type": "not_cached"}]},
          {"id": "wrong", "requests": [
            {"response_headers": [["Cache-Control", "no-store"]], "setup": true}, {"expected_type": "cached"}]},
          {"id": "other", "browser_skip": true, "requests": []}]}]
        """

    @Test func `the runner passes what is right, and fails what is wrong`() async throws {
        let suites = try #require(
            try JSONSerialization.jsonObject(with: Data(Self.cases.utf8)) as? [SuiteRunner.Object])
        let results = try await SuiteRunner(isShared: false).run(suites)
        #expect(results.map(\.id) == ["fresh", "stale", "unsafe", "wrong", "other"])
        #expect(results.prefix(3).allSatisfy { $0.result == .passed }, "\(results)")
        #expect(results[3].result == .failed("request 2: the origin was asked") && results[4].result == .skipped)
    }

    /// The public suite, if `LARDER_HTTP_SUITE` names the file that its export has printed.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["LARDER_HTTP_SUITE"] != nil, "needs the suite"))
    func `what the public suite requires is passed`() async throws {
        let path = try #require(ProcessInfo.processInfo.environment["LARDER_HTTP_SUITE"])
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let suites = try #require(try JSONSerialization.jsonObject(with: data) as? [SuiteRunner.Object])
        for isShared in [false, true] {
            let results = try await SuiteRunner(isShared: isShared).run(suites)
            for kind in ["required", "optimal", "check"] {
                let all = results.filter { $0.kind == kind && $0.result != .skipped }
                let passed = all.filter { $0.result == .passed }
                print("http suite, \(isShared ? "shared" : "private"), \(kind): \(passed.count) of \(all.count)")
                for (id, _, result) in all where result != .passed { print("  \(id): \(result)") }
            }
            let failed = results.filter { if case .failed = $0.result { $0.kind == "required" } else { false } }
            #expect(failed.map(\.id) == [])
        }
    }
}
