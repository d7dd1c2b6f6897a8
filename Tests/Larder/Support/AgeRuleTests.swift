import Larder
import LarderTestSupport
import Testing

struct AgeRuleTests {
    @Test func `what is surely served is over at no moment of the span`() {
        var random = Seeded()
        let borders: [Int64] = [.min, .min + 1, -1000, -1, 0, 1, 20, 999, 1000, 1001, .max - 1000, .max - 1, .max]
        func one(of numbers: [Int64]) -> Int64 {
            let number = numbers[Int.random(in: 0..<numbers.count, using: &random)]
            let (beside, isTooFar) = number.addingReportingOverflow(Int64.random(in: -3...3, using: &random))
            return isTooFar ? number : beside
        }
        var yeses = 0
        for _ in 0..<100_000 {
            let start = one(of: borders)
            let rule = AgeRule(
                maximum: one(of: borders), deadline: one(of: borders + [start, .max, .max]),
                isSliding: Int.random(in: 0..<8, using: &random) == 0)
            let earliest = one(of: borders + [start, start &+ rule.maximum, rule.deadline])
            let (latest, isTooFar) = earliest.addingReportingOverflow(Int64.random(in: 0...25, using: &random))
            guard !isTooFar, rule.surelyServes(start: start, from: earliest, to: latest) else { continue }
            yeses += 1
            for moment in earliest...latest where rule.isExpired(start: start, now: moment) {
                Issue.record("seed \(random.seed): \(rule), \(start), \(earliest)...\(latest), \(moment)")
                return
            }
        }
        #expect(yeses > 1000)
    }

    @Test(arguments: [
        AgeRule(maximum: 1000), AgeRule(maximum: 1000, deadline: 6_500), AgeRule(deadline: 6_000), AgeRule(),
    ])
    func `what is served all the while is so in one look, unless its age began later`(rule: AgeRule) {
        for earliest in Int64(4_990)...6_550 {
            let isServed =
                !rule.isExpired(start: 5_000, now: earliest) && !rule.isExpired(start: 5_000, now: earliest + 20)
            let isSure = rule.surelyServes(start: 5_000, from: earliest, to: earliest + 20)
            #expect(isSure == (isServed && earliest >= 5_000), "\(earliest)")
        }
    }
}
