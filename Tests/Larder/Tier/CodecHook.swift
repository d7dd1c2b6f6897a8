import Foundation
import Larder
import LarderTestSupport
import Testing

/// A codec of numbers that does something while a value is being decoded.
///
/// A read has found the row by then, and has not offered the value to memory.
final class CodecHook: Sendable {
    private struct Plan: Sendable {
        var skipped = 0
        var action: (@Sendable () throws -> Void)?
    }

    private let plan = Locked(Plan())
    private let decodings = Counter()

    /// The number of values that were decoded.
    var count: Int { decodings.value }

    /// A Boolean value that indicates whether nothing is left to run.
    var isDone: Bool { plan.value.action == nil }

    /// Runs `action` once, beside the next decoding or a later one.
    ///
    /// - Parameter skipped: The number of decodings before that one.
    func runBesideDecoding(after skipped: Int = 0, _ action: @escaping @Sendable () throws -> Void) {
        plan.change { $0 = Plan(skipped: skipped, action: action) }
    }

    private func decode(_ bytes: Data) -> Int {
        decodings.increment()
        let action = plan.change { plan -> (@Sendable () throws -> Void)? in
            if plan.skipped > 0 {
                plan.skipped -= 1
                return nil
            }
            let action = plan.action
            plan.action = nil
            return action
        }
        do { try action?() } catch { Issue.record(error) }
        return Int(String(decoding: bytes, as: UTF8.self)) ?? -1
    }

    /// Opens the cache of numbers.
    func cache(
        in manager: CacheManager, _ values: ValuePlace = .rows, version: CacheVersion = "1", maxAge: MaxAge = .hours(1)
    ) throws -> Cache<Int, Int> {
        let codec = ValueCodec<Int>(
            identifier: "hooked", encode: { Data("\($0)".utf8) }, decode: { self.decode($0) })
        let options = CacheOptions(inlineLimit: values == .files ? 0 : CacheOptions.defaultInlineLimit)
        return try manager.cache(
            named: "numbers", version: version, maxAge: maxAge, options: options.steady, codec: codec)
    }
}

/// Where the values of a store are.
enum ValuePlace: CaseIterable { case rows, files, memory }

extension TemporaryStore {
    /// Opens the store of this place, or one that lives in memory.
    func manager(for values: ValuePlace) throws -> CacheManager {
        try values == .memory ? .inMemory(configuration: clock.configuration) : manager()
    }
}
