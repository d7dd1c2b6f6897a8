import Foundation
import Larder
import LarderTestSupport
import Testing

struct SweepClockTests {
    private let time = ManualTime(Date(timeIntervalSince1970: 1000))

    @Test func `a clock that keeps time is believed`() {
        let clock = SweepClock(time.timekeeper)
        time.advance(by: .seconds(86_400))
        #expect(clock.moment() == SweepMoment(87_400_000))
        // As it is set by the network now and then.
        time.mislead(by: .seconds(59))
        time.advance(by: .seconds(1))
        #expect(clock.moment() == SweepMoment(87_460_000))
    }

    @Test func `a clock that is set ahead is not, until it is set right`() {
        let clock = SweepClock(time.timekeeper)
        time.advance(by: .seconds(10))
        time.mislead(by: .seconds(86_400))
        let moment = clock.moment()
        #expect(moment.isContradicted && moment.wall == 87_410_000)
        #expect(moment.now(from: 1_000_000) == 1_010_000)
        time.advance(by: .seconds(5))
        #expect(clock.moment().now(from: 1_000_000) == 1_015_000)
        // An age that began since then is counted by the clock that it began by.
        #expect(clock.moment().now(from: 87_411_000) == 87_415_000)
        time.mislead(by: .seconds(-86_400))
        #expect(clock.moment() == SweepMoment(1_015_000))
    }

    @Test func `a clock that is set back is believed at once`() {
        let clock = SweepClock(time.timekeeper)
        time.mislead(by: .seconds(-900))
        #expect(clock.moment() == SweepMoment(100_000))
        time.advance(by: .seconds(10))
        #expect(clock.moment() == SweepMoment(110_000))
    }

    @Test func `a clock that is set ahead twice counts each age by the part in which it began`() {
        let clock = SweepClock(time.timekeeper)
        time.mislead(by: .seconds(10_000))
        #expect(clock.moment().now(from: 11_000_000) == 11_000_000)
        time.mislead(by: .seconds(10_000))
        let moment = clock.moment()
        #expect(moment.now(from: 1_000_000) == 1_000_000)
        #expect(moment.now(from: 11_000_000) == 1_000_000)
        #expect(moment.now(from: 21_000_000) == 21_000_000)
    }

    @Test func `an injected clock without an uptime contradicts nothing`() {
        let clock = SweepClock(Timekeeper(clock: { [time] in time.now }))
        time.mislead(by: .seconds(86_400))
        #expect(!clock.moment().isContradicted)
    }

    @Test func `the system's uptime passes as its clock does`() {
        let (wall, uptime) = (Timekeeper.system.now(), Timekeeper.system.uptime())
        let clock = SweepClock(.system)
        #expect(!clock.moment().isContradicted)
        #expect(uptime > 0 && Timekeeper.system.uptime() >= uptime && wall > 1_700_000_000_000)
    }
}
