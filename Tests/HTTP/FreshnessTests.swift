import Foundation
import LarderHTTP
import LarderTestSupport
import Testing

/// Sections 3 and 4.2 of RFC 9111: what is stored, and how long it is fresh.
struct FreshnessTests {
    /// The fields of a response, and whether the next request is served from the cache, so many seconds later.
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let fields: @Sendable (HTTPBench) -> [(String, String)]
        var wait = 3
        var status = 200
        var isShared = false
        var request: [(String, String)] = []
        var targeted: [String] = []
        let isServed: Bool

        var testDescription: String { name }
    }

    private static func make(
        _ name: String, served: Bool, wait: Int = 3, status: Int = 200, shared: Bool = false,
        request: [(String, String)] = [], targeted: [String] = [],
        _ fields: @escaping @Sendable (HTTPBench) -> [(String, String)]
    ) -> Case {
        Case(
            name: name, fields: fields, wait: wait, status: status, isShared: shared, request: request,
            targeted: targeted, isServed: served)
    }

    static let cases: [Case] = [
        make("nothing says how long", served: false) { _ in [] },
        make("max-age", served: true) { _ in [("Cache-Control", "max-age=3600")] },
        make("max-age that has passed", served: false) { _ in [("Cache-Control", "max-age=2")] },
        make("max-age at its end", served: false, wait: 10) { _ in [("Cache-Control", "max-age=10")] },
        make("max-age before its end", served: true, wait: 9) { _ in [("Cache-Control", "max-age=10")] },
        make("max-age of zero", served: false, wait: 0) { _ in [("Cache-Control", "max-age=0"), ("ETag", "\"a\"")] },
        make("a name in capitals", served: true) { _ in [("cache-control", "MAX-AGE=3600")] },
        make("max-age in quotes", served: true) { _ in [("Cache-Control", "max-age=\"3600\"")] },
        make("max-age with leading zeros", served: true) { _ in [("Cache-Control", "max-age=003600")] },
        make("max-age beyond all bounds", served: true) { _ in [("Cache-Control", "max-age=99999999999999999999")] },
        make("max-age in single quotes", served: false) { _ in [("Cache-Control", "max-age='3600'")] },
        make("a negative max-age", served: false) { _ in [("Cache-Control", "max-age=-3600")] },
        make("max-age with letters", served: false) { _ in [("Cache-Control", "max-age=3600a")] },
        make("max-age with a space", served: false) { _ in [("Cache-Control", "max-age= 3600")] },
        make("max-age inside of a quoted text", served: false) { _ in
            [("Cache-Control", "x=\"a, max-age=3600\", max-age=1")]
        },
        make("the first of two", served: true) { _ in [("Cache-Control", "max-age=3600, max-age=1")] },
        make("the first of two lines", served: false) { _ in
            [("Cache-Control", "max-age=1"), ("Cache-Control", "max-age=3600")]
        },
        make("an extension", served: true) { _ in [("Cache-Control", "x, y=1, max-age=3600")] },
        make("Expires ahead", served: true) { [("Date", $0.date(0)), ("Expires", $0.date(60))] },
        make("Expires in the past", served: false) { [("Date", $0.date(0)), ("Expires", $0.date(-60))] },
        make("Expires that is no date", served: false) { [("Date", $0.date(0)), ("Expires", "0")] },
        make("Expires without Date", served: true) { [("Expires", $0.date(60))] },
        make("Expires with a damaged Date", served: true) { [("Date", "x"), ("Expires", $0.date(60))] },
        make("Expires before Date, both ahead", served: false) { [("Date", $0.date(400)), ("Expires", $0.date(300))] },
        make("max-age and an old Expires", served: true) {
            [("Date", $0.date(0)), ("Expires", $0.date(-60)), ("Cache-Control", "max-age=60")]
        },
        make("max-age of zero and Expires ahead", served: false) {
            [("Date", $0.date(0)), ("Expires", $0.date(60)), ("Cache-Control", "max-age=0"), ("ETag", "\"a\"")]
        },
        make("Age within", served: true) { _ in [("Cache-Control", "max-age=60"), ("Age", "30")] },
        make("Age beyond", served: false) { _ in [("Cache-Control", "max-age=60"), ("Age", "90"), ("ETag", "\"a\"")] },
        make("the first of several ages", served: false) { _ in
            [("Cache-Control", "max-age=60"), ("Age", "90, 0"), ("ETag", "\"a\"")]
        },
        make("Age that is no number", served: true) { _ in [("Cache-Control", "max-age=60"), ("Age", "old")] },
        make("a Date in the past ages", served: false) {
            [("Date", $0.date(-90)), ("Cache-Control", "max-age=60"), ("ETag", "\"a\"")]
        },
        make("a Date ahead does not", served: true) { [("Date", $0.date(90)), ("Cache-Control", "max-age=60")] },
        make("a tenth of the time since the change", served: true, wait: 8000) {
            [("Date", $0.date(0)), ("Last-Modified", $0.date(-86_400))]
        },
        make("more than a tenth", served: false, wait: 9000) {
            [("Date", $0.date(0)), ("Last-Modified", $0.date(-86_400))]
        },
        make("at most a day", served: false, wait: 90_000) {
            [("Date", $0.date(0)), ("Last-Modified", $0.date(-86_400 * 365))]
        },
        make("403 without a lifetime", served: false, status: 403) {
            [("Date", $0.date(0)), ("Last-Modified", $0.date(-86_400))]
        },
        make("404 without a lifetime", served: true, status: 404) {
            [("Date", $0.date(0)), ("Last-Modified", $0.date(-86_400))]
        },
        make("599 that is public", served: true, status: 599) {
            [("Date", $0.date(0)), ("Last-Modified", $0.date(-86_400)), ("Cache-Control", "public")]
        },
        make("599 with a lifetime", served: true, status: 599) { _ in [("Cache-Control", "max-age=60")] },
        make("206 is passed on", served: false, status: 206) { _ in [("Cache-Control", "max-age=60")] },
        make("no-store", served: false) { _ in [("Cache-Control", "no-store, max-age=60")] },
        make("no-store in capitals", served: false) { _ in [("Cache-Control", "No-StOrE, max-age=60")] },
        make("no-cache", served: false) { _ in [("Cache-Control", "no-cache, max-age=60")] },
        make("private in a private cache", served: true) { _ in [("Cache-Control", "private, max-age=60")] },
        make("private in a shared cache", served: false, shared: true) { _ in [("Cache-Control", "private, max-age=60")]
        },
        make("s-maxage in a private cache", served: false) { _ in [("Cache-Control", "s-maxage=60, max-age=1")] },
        make("s-maxage in a shared cache", served: true, shared: true) { _ in
            [("Cache-Control", "s-maxage=60, max-age=1")]
        },
        make("a short s-maxage", served: false, shared: true) { _ in [("Cache-Control", "max-age=60, s-maxage=1")] },
        make("must-understand of what is understood", served: true) { _ in
            [("Cache-Control", "must-understand, no-store, max-age=60")]
        },
        make("must-understand of what is not", served: false, status: 299) { _ in
            [("Cache-Control", "must-understand, max-age=60")]
        },
        make("Vary of everything", served: false) { _ in [("Cache-Control", "max-age=60"), ("Vary", "x, *")] },
        make("Set-Cookie", served: true) { _ in [("Cache-Control", "max-age=60"), ("Set-Cookie", "a=b")] },
        make("Pragma of a response says nothing", served: true) { _ in
            [("Cache-Control", "max-age=60"), ("Pragma", "no-cache")]
        },
        make("Authorization in a shared cache", served: false, shared: true, request: [("Authorization", "x")]) { _ in
            [("Cache-Control", "max-age=60")]
        },
        make("Authorization of what is public", served: true, shared: true, request: [("Authorization", "x")]) { _ in
            [("Cache-Control", "max-age=60, public")]
        },
        make("a targeted field", served: true, targeted: ["CDN-Cache-Control"]) { _ in
            [("CDN-Cache-Control", "max-age=60"), ("Cache-Control", "no-store")]
        },
        make("a targeted field that forbids", served: false, targeted: ["CDN-Cache-Control"]) { _ in
            [("CDN-Cache-Control", "no-store"), ("Cache-Control", "max-age=60")]
        },
        make("a targeted field that is damaged", served: false, targeted: ["CDN-Cache-Control"]) { _ in
            [("CDN-Cache-Control", "max-age=60, &&&"), ("Cache-Control", "no-store")]
        },
        make("a targeted lifetime of the wrong type", served: false, targeted: ["CDN-Cache-Control"]) { _ in
            [("CDN-Cache-Control", "max-age=\"60\""), ("Cache-Control", "no-store")]
        },
        make("a targeted field that is not asked for", served: false) { _ in
            [("CDN-Cache-Control", "max-age=60"), ("Cache-Control", "no-store")]
        },
    ]

    @Test(arguments: cases)
    func `what is served from the cache`(_ test: Case) async throws {
        let bench = try await HTTPBench(HTTPOptions(isShared: test.isShared, targetedFields: test.targeted))
        bench.answer(test.status, test.fields(bench))
        bench.answer(test.status)
        let first = try await bench.get("/page", test.request)
        #expect(first.status == test.status && first.text == "body 0")
        bench.wait(test.wait)
        let second = try await bench.get("/page", test.request)
        #expect(second.text == (test.isServed ? "body 0" : "body 1"))
        #expect(bench.sent == (test.isServed ? 1 : 2))
    }

    @Test func `a served response has its age, and keeps its date`() async throws {
        let bench = try await HTTPBench()
        let date = bench.date(0)
        bench.answer(
            200,
            [
                ("Cache-Control", "max-age=60"), ("Date", date), ("Age", "5"), ("Connection", "x"), ("X", "1"),
                ("Y", "2"),
            ])
        _ = try await bench.get()
        bench.wait(10)
        let response = try await bench.get()
        #expect(response.field("Age") == "15" && response.field("Date") == date)
        #expect(response.field("Connection") == nil && response.field("X") == nil && response.field("Y") == "2")
        #expect(response.outcome == "Larder; hit; ttl=45")
        #expect(bench.http.statistics.hits == 1 && bench.http.statistics.misses == 1)
        #expect(bench.http.statistics.hitRate == 0.5)
    }

    @Test(arguments: ["no-cache=\"a, b\"", "private=\"a, b\""])
    func `fields that are named are not stored`(directive: String) async throws {
        let bench = try await HTTPBench(HTTPOptions(isShared: directive.hasPrefix("private")))
        bench.answer(200, [("Cache-Control", "max-age=60, \(directive)"), ("a", "1"), ("b", "2"), ("c", "3")])
        #expect(try await bench.get().field("a") == "1")
        let response = try await bench.get()
        #expect(response.field("a") == nil && response.field("b") == nil && response.field("c") == "3")
        #expect(bench.sent == 1)
    }

    @Test func `what is too large, cut off, or has too many fields is not stored`() async throws {
        let bench = try await HTTPBench(HTTPOptions(bodyLimit: 10, fieldLimit: 200))
        let fresh = ("Cache-Control", "max-age=60")
        bench.answer(200, [fresh], "eleven bytes")
        bench.answer(200, [fresh, ("Content-Length", "5")], "four")
        bench.answer(200, [fresh, ("X", String(repeating: "x", count: 200))], "x")
        bench.answer(200, [fresh, ("Content-Length", "4")], "four")
        for number in 1...4 {
            _ = try await bench.get()
            #expect(bench.sent == number)
        }
        #expect(try await bench.get().text == "four" && bench.sent == 4)
    }

    @Test func `a response of another target is not stored`() async throws {
        let bench = try await HTTPBench()
        let url = try #require(URL(string: "https://evil.example/page"))
        bench.answers.change {
            $0[0] = { _ in
                HTTPResponse(status: 200, fields: [("Cache-Control", "max-age=60")], body: Data("evil".utf8), url: url)
            }
        }
        _ = try await bench.get()
        bench.answer(200, [], "good")
        #expect(try await bench.get().text == "good")
    }
}
