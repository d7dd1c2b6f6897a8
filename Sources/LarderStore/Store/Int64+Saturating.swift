extension Int64 {
    /// Returns the sum, or the largest or smallest number if that is out of range.
    @usableFromInline
    package func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, isOut) = addingReportingOverflow(other)
        return isOut ? (other < 0 ? .min : .max) : sum
    }

    /// Returns the difference, or the largest or smallest number if that is out of range.
    @usableFromInline
    package func subtractingSaturated(_ other: Int64) -> Int64 {
        let (difference, isOut) = subtractingReportingOverflow(other)
        return isOut ? (other < 0 ? .max : .min) : difference
    }
}
