extension Int64 {
    /// Returns the sum, or the limit of the type that it exceeds.
    @usableFromInline
    package func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, isTooMuch) = addingReportingOverflow(other)
        return isTooMuch ? (other < 0 ? .min : .max) : sum
    }

    /// Returns the difference, or the limit of the type that it exceeds.
    @usableFromInline
    package func subtractingSaturated(_ other: Int64) -> Int64 {
        let (difference, isTooMuch) = subtractingReportingOverflow(other)
        return isTooMuch ? (other < 0 ? .max : .min) : difference
    }
}
