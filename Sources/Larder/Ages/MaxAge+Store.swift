internal import LarderStore

extension MaxAge {
    /// The rule as the store has it.
    var storeRule: LarderStore.AgeRule {
        if rule.isUnlimited { return .unlimited }
        if rule.deadline < .max { return .until(rule.deadline) }
        return rule.isSliding ? .sinceAccess(rule.maximum) : .sinceWrite(rule.maximum)
    }

    /// Throws if the age was created from not-a-number.
    func requireNumber(_ owner: @autoclosure () -> String) throws(CacheError) {
        if isNumber { return }
        throw CacheError(
            .invalidConfiguration,
            "The maximum age of \(owner()) was created from not-a-number. Use a number, or `.unlimited`.")
    }
}
