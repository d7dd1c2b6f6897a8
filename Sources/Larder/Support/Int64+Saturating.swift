extension Int64 {
    /// The sum, or the greatest number.
    package func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, isTooMuch) = addingReportingOverflow(other)
        return isTooMuch ? .max : sum
    }

    /// The difference, or the least number; the other is not negative.
    package func subtractingSaturated(_ other: Int64) -> Int64 {
        let (difference, isTooMuch) = subtractingReportingOverflow(other)
        return isTooMuch ? .min : difference
    }
}
