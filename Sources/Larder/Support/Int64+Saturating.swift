extension Int64 {
    /// The sum, or the number at the end that it runs over.
    package func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, isTooMuch) = addingReportingOverflow(other)
        return isTooMuch ? (other < 0 ? .min : .max) : sum
    }

    /// The difference, or the number at the end that it runs over.
    package func subtractingSaturated(_ other: Int64) -> Int64 {
        let (difference, isTooMuch) = subtractingReportingOverflow(other)
        return isTooMuch ? (other < 0 ? .max : .min) : difference
    }
}
