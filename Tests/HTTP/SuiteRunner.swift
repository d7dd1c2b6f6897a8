import Foundation
import Larder
import LarderHTTP
import LarderTestSupport

/// Runs cases in the format of the public suite of tests for HTTP caches (http-tests/cache-tests), as its documentation has it.
///
/// A case is a list of requests. Each says what the origin answers, and what the client has to see. The origin is a closure, and
/// pauses move the clock.
struct SuiteRunner {
    typealias Object = [String: Any]

    enum Result: Equatable {
        case passed
        case failed(String)
        /// A step that only prepares the case has failed.
        case unprepared(String)
        case skipped
    }

    let isShared: Bool

    /// Runs all cases of suites, and returns their results by id.
    func run(_ suites: [Object]) async throws -> [(id: String, kind: String, result: Result)] {
        var results: [(String, String, Result)] = []
        for suite in suites {
            for test in suite["tests"] as? [Object] ?? [] {
                let result = try await run(test)
                results.append((test["id"] as? String ?? "?", test["kind"] as? String ?? "required", result))
            }
        }
        return results
    }

    func run(_ test: Object) async throws -> Result {
        let isLeftOut = isShared ? test["browser_only"] : test["browser_skip"]
        if isLeftOut as? Bool == true || !isShared && test["cdn_only"] as? Bool == true { return .skipped }
        let targeted = isShared ? ["CDN-Cache-Control"] : []
        let bench = try await HTTPBench(HTTPOptions(isShared: isShared, targetedFields: targeted))
        let steps = test["requests"] as? [Object] ?? []
        var origin = Origin()
        for (number, step) in steps.enumerated() {
            let failure: String?
            do {
                failure = try await run(step, number + 1, bench, &origin)
            } catch {
                failure = "\(error)"
            }
            if let failure {
                let text = "request \(number + 1): \(failure)"
                return step["setup"] as? Bool == true ? .unprepared(text) : .failed(text)
            }
            if step["pause_after"] as? Bool == true { bench.wait(3) }
        }
        return .passed
    }

    /// What the origin remembers of its answers.
    private struct Origin {
        var tag: String?
        var modified: String?
        var requests = 0
    }

    private func fields(_ list: Any?, _ bench: HTTPBench) -> [(String, String)] {
        (list as? [[Any]] ?? []).compactMap { pair in
            guard let name = pair.first as? String, pair.count > 1 else { return nil }
            if let text = pair[1] as? String { return (name, text) }
            guard let seconds = pair[1] as? Int else { return nil }
            let isMoment = ["date", "expires", "last-modified", "if-modified-since", "if-unmodified-since"]
                .contains(name.lowercased())
            return (name, isMoment ? bench.date(seconds) : "\(seconds)")
        }
    }

    /// Sends a request, and returns what is wrong with what came of it.
    private func run(
        _ step: Object, _ number: Int, _ bench: HTTPBench, _ origin: inout Origin
    ) async throws -> String? {
        let path = "/" + (step["filename"] as? String ?? "test")
        let query = (step["query_arg"] as? String).map { "?" + $0 } ?? ""
        guard let url = URL(string: "https://example.org\(path)\(query)") else { throw HTTPBench.Lost() }
        var answer = fields(step["response_headers"], bench)
        if step["magic_locations"] as? Bool == true {
            answer = answer.map { $0.0.hasSuffix("ocation") ? ($0.0, "https://example.org/" + $0.1) : $0 }
        }
        let status = (step["response_status"] as? [Any])?.first as? Int ?? 200
        let body = step["response_body"] as? String ?? (status == 204 || status == 304 ? "" : "body of \(path)")
        let isLost = step["disconnect"] as? Bool == true
        let (known, seen, sent) = (origin, Locked<HTTPRequest?>(nil), answer)
        let validates = step["expected_type"] as? String != "not_cached"
        let count = origin.requests + 1
        let request = HTTPRequest(
            url, method: step["request_method"] as? String ?? "GET", fields: fields(step["request_headers"], bench),
            body: (step["request_body"] as? String).map { Data($0.utf8) })
        let response: HTTPResponse
        do {
            response = try await bench.http.response(for: request) { request in
                seen.change { $0 = request }
                if isLost { throw HTTPBench.Lost() }
                let mark = ("Server-Request-Count", "\(count)")
                let isKnown =
                    known.tag != nil && request.field("If-None-Match") == known.tag
                    || known.modified != nil && request.field("If-Modified-Since") == known.modified
                if isKnown && validates {
                    return HTTPResponse(status: 304, fields: sent + [mark], body: Data())
                }
                return HTTPResponse(status: status, fields: sent + [mark], body: Data(body.utf8))
            }
        } catch {
            return isLost && step["expected_type"] as? String == "not_cached" ? nil : "\(error)"
        }
        if seen.value != nil {
            origin.requests = count
            for (name, value) in answer {
                if name.lowercased() == "etag" { origin.tag = value }
                if name.lowercased() == "last-modified" { origin.modified = value }
            }
        }
        return problem(step, response, seen.value, bench)
    }

    private func problem(
        _ step: Object, _ response: HTTPResponse, _ seen: HTTPRequest?, _ bench: HTTPBench
    ) -> String? {
        switch step["expected_type"] as? String {
        case "cached": if seen != nil { return "the origin was asked" }
        case "not_cached": if seen == nil { return "the origin was not asked" }
        case "etag_validated", "etag_validate":
            if seen?.field("If-None-Match") == nil { return "it was not validated by its tag" }
        case "lm_validated", "lm_validate":
            if seen?.field("If-Modified-Since") == nil { return "it was not validated by its date" }
        default: break
        }
        if let status = step["expected_status"] as? Int, response.status != status {
            return "the status is \(response.status)"
        }
        if let text = step["expected_response_text"] as? String, response.text != text {
            return "the body is \(response.text)"
        }
        for expected in step["expected_response_headers"] as? [Any] ?? [] {
            if let name = expected as? String {
                if response.field(name) == nil { return "\(name) is missing" }
            } else if let parts = expected as? [Any], let name = parts.first as? String, parts.count == 3 {
                let value = response.field(name).flatMap { Int($0) } ?? .min
                if parts[1] as? String == ">", value <= parts[2] as? Int ?? .max { return "\(name) is \(value)" }
                if parts[1] as? String == "=", response.field(name) != response.field(parts[2] as? String ?? "") {
                    return "\(name) is another one"
                }
            } else if let pair = fields([expected], bench).first, response.field(pair.0) != pair.1 {
                return "\(pair.0) is \(response.field(pair.0) ?? "missing")"
            }
        }
        for name in step["expected_response_headers_missing"] as? [String] ?? [] where response.field(name) != nil {
            return "\(name) is there"
        }
        for expected in step["expected_request_headers"] as? [Any] ?? [] {
            if let name = expected as? String {
                if seen?.field(name) == nil { return "the request has no \(name)" }
            } else if let pair = fields([expected], bench).first, seen?.field(pair.0) != pair.1 {
                return "\(pair.0) of the request is \(seen?.field(pair.0) ?? "missing")"
            }
        }
        if let method = step["expected_method"] as? String, seen?.method != method {
            return "the origin saw no \(method)"
        }
        return nil
    }
}
