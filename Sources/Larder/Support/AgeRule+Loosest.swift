extension AgeRule {
    /// The one or two of several rules by which an entry is over at a moment precisely if it is by all of them.
    ///
    /// Two, where some ages run from the write and others from the last use: the longest of each. Without any rule nothing
    /// is over.
    package static func loosest(_ rules: [AgeRule], at now: Int64) -> (first: AgeRule, second: AgeRule?) {
        if rules.isEmpty { return (AgeRule(), nil) }
        // By the others everything is over, which decides nothing.
        let rules = rules.filter { $0.maximum > 0 && now <= $0.deadline }
        if rules.contains(where: { $0.maximum == .max }) { return (AgeRule(), nil) }
        let sinceWrite = rules.filter { !$0.isSliding }.max { $0.maximum < $1.maximum }
        let sinceUse = rules.filter(\.isSliding).max { $0.maximum < $1.maximum }
        switch (sinceWrite, sinceUse) {
        case (let first?, let second): return (first, second)
        case (nil, let second?): return (second, nil)
        case (nil, nil): return (AgeRule(maximum: 0), nil)
        }
    }
}
