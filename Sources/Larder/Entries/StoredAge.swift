/// An age as a row holds it: two integers that people can read in the shell, and that the queries compare.
@usableFromInline
package struct StoredAge: Hashable, Sendable {
    /// 0 unlimited, 1 since the write, 2 since the last access, 3 until a moment.
    @usableFromInline package let kind: Int64

    /// Milliseconds; with kind 3 since 1970.
    @usableFromInline package let milliseconds: Int64

    package init(kind: Int64, milliseconds: Int64) {
        self.kind = kind
        self.milliseconds = milliseconds
    }

    @usableFromInline
    package init(_ rule: AgeRule) {
        if rule.deadline < .max {
            self.init(kind: 3, milliseconds: rule.deadline)
        } else if rule.maximum < .max {
            self.init(kind: rule.isSliding ? 2 : 1, milliseconds: rule.maximum)
        } else {
            self.init(kind: 0, milliseconds: 0)
        }
    }

    /// The rule; a kind that no release has written counts as unlimited.
    package var rule: AgeRule {
        switch kind {
        case 1: AgeRule(maximum: milliseconds)
        case 2: AgeRule(maximum: milliseconds, isSliding: true)
        case 3: AgeRule(deadline: milliseconds)
        default: AgeRule()
        }
    }
}
