import Foundation
import Larder
import LarderStore
import Testing

struct MaxAgeTests {
    @Test func `units agree`() {
        #expect(MaxAge.minutes(2) == .seconds(120))
        #expect(MaxAge.hours(2) == .minutes(120))
        #expect(MaxAge.days(2) == .hours(48))
        #expect(MaxAge.timeInterval(1.5) == .seconds(1.5))
        #expect(MaxAge.duration(.milliseconds(1500)) == .seconds(1.5))
        #expect(MaxAge.duration(.seconds(3)) == .seconds(3))
        #expect(MaxAge.seconds(1) != .seconds(2))
        #expect(MaxAge.seconds(1) != MaxAge.seconds(1).sinceLastAccess)
        #expect(MaxAge.unlimited.sinceLastAccess == .unlimited)
    }

    @Test func `ages are rounded to the nearest millisecond, a positive one to at least one`() {
        #expect(MaxAge.seconds(0.0014) == .duration(.milliseconds(1)))
        #expect(MaxAge.seconds(0.0016) == .duration(.milliseconds(2)))
        #expect(MaxAge.seconds(1e-300) == .duration(.milliseconds(1)))
        #expect(MaxAge.duration(.nanoseconds(1)) == .duration(.milliseconds(1)))
        #expect(MaxAge.duration(.microseconds(1500)) == .duration(.milliseconds(2)))
    }

    @Test func `0, infinity, NaN, the greatest number are defined`() {
        #expect(MaxAge.seconds(.infinity) == .unlimited)
        #expect(MaxAge.seconds(.greatestFiniteMagnitude) == .unlimited)
        #expect(MaxAge.days(1e300) == .unlimited)
        #expect(MaxAge.seconds(-.infinity) == .seconds(0) && MaxAge.seconds(-1) == .seconds(0))
        #expect(MaxAge.duration(.seconds(Int64.max)) == .unlimited)
        #expect(MaxAge.duration(.seconds(Int64.min)) == .seconds(0))
        #expect(MaxAge.seconds(.nan) == .minutes(.nan) && MaxAge.seconds(.nan) != .unlimited)
        #expect(!MaxAge.seconds(.nan).isNumber && !MaxAge.until(Date(timeIntervalSince1970: .nan)).isNumber)
    }

    @Test(arguments: [
        (MaxAge.days(7), "7 days"), (.days(1), "1 day"), (.hours(36), "36 hours"), (.seconds(3600), "1 hour"),
        (.minutes(90), "90 minutes"), (.seconds(90), "90 seconds"), (.seconds(1), "1 second"),
        (.seconds(0), "0 seconds"), (.seconds(-5), "0 seconds"), (.seconds(1.5), "1.5 seconds"),
        (.seconds(0.001), "0.001 seconds"),
        (.seconds(60.05), "60.05 seconds"), (.unlimited, "unlimited"), (.seconds(.nan), "not a number"),
        (MaxAge.days(7).sinceLastAccess, "7 days since the last access"),
        (MaxAge.seconds(.nan).sinceLastAccess, "not a number"), (MaxAge.unlimited.sinceLastAccess, "unlimited"),
        (.until(Date(timeIntervalSince1970: 0)), "until 1970-01-01T00:00:00Z"),
        (.until(Date(timeIntervalSince1970: 1_790_000_000.123)), "until 2026-09-21T14:13:20.123Z"),
        (.until(Date(timeIntervalSince1970: -0.25)), "until 1969-12-31T23:59:59.75Z"),
        (.until(Date(timeIntervalSince1970: 253_402_300_799.999)), "until 9999-12-31T23:59:59.999Z"),
        (.until(Date(timeIntervalSince1970: -12_212_553_600)), "until 1583-01-01T00:00:00Z"),
        (.until(.distantPast), "until -62135769600000 ms after 1970-01-01T00:00:00Z"),
        (.until(.distantFuture), "until 4001-01-01T00:00:00Z"),
        (.until(Date(timeIntervalSince1970: 253_402_300_800)), "until 253402300800000 ms after 1970-01-01T00:00:00Z"),
        (.until(Date(timeIntervalSince1970: -.infinity)), "until -9223372036854775808 ms after 1970-01-01T00:00:00Z"),
        (.until(Date(timeIntervalSince1970: .infinity)), "unlimited"),
    ])
    func `an age says in words what it is`(age: MaxAge, text: String) {
        #expect(age.description == text && "\(age)" == text)
    }

    @Test(arguments: [
        (AgeRule.sinceWrite(1000), 5_000, 6_000, false), (.sinceWrite(1000), 5_000, 6_001, true),
        (.sinceWrite(1000), 5_000, 4_000, false), (.sinceWrite(0), 5_000, 5_000, true),
        (.sinceAccess(1000), 5_000, 6_001, true), (.unlimited, .min, .max, false), (.sinceWrite(1), .min, .max, true),
        (.until(7_000), 0, 7_000, false), (.until(7_000), 0, 7_001, true), (.until(7_000), 8_000, 8_000, true),
    ])
    func `precisely as old is served, older is not`(rule: AgeRule, start: Int64, now: Int64, isExpired: Bool) {
        #expect((now > rule.end(writtenAt: start, accessedAt: start, id: 1)) == isExpired)
    }

    @Test func `the coarse clock is never ahead of the exact one, and lags less than the margin`() {
        var looks = 0
        while looks < 1000 {
            let earlier = SystemClock.now()
            let coarse = SystemClock.coarseNow()
            let exact = SystemClock.now()
            // Of a thread that is held up in between, the two tell of different moments.
            guard (0...1).contains(exact - earlier) else { continue }
            looks += 1
            // The exact one is rounded to the nearest, so half a millisecond may make one.
            #expect(coarse <= exact + 1 && exact - coarse <= SystemClock.coarseLag)
        }
    }

    @Test func `moments are rounded to the nearest millisecond, and absurd ones do not trap`() {
        #expect(SystemClock.milliseconds(of: Date(timeIntervalSince1970: 1.0004)) == 1000)
        #expect(SystemClock.milliseconds(of: Date(timeIntervalSince1970: 1.0006)) == 1001)
        #expect(SystemClock.milliseconds(of: Date(timeIntervalSince1970: .infinity)) == .max)
        #expect(SystemClock.milliseconds(of: Date(timeIntervalSince1970: -.infinity)) == .min)
        #expect(SystemClock.milliseconds(of: Date(timeIntervalSince1970: .nan)) == 0)
    }
}
