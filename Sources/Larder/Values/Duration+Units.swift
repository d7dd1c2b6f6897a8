// A program that has such calls of its own goes on using these: ours are not preferred.
extension Duration {
    /// Returns a duration of so many minutes.
    @_disfavoredOverload
    public static func minutes(_ minutes: some BinaryInteger) -> Duration { .seconds(minutes) * 60 }

    /// Returns a duration of so many minutes.
    @_disfavoredOverload
    public static func minutes(_ minutes: Double) -> Duration { .seconds(minutes * 60) }

    /// Returns a duration of so many hours.
    @_disfavoredOverload
    public static func hours(_ hours: some BinaryInteger) -> Duration { .seconds(hours) * 3600 }

    /// Returns a duration of so many hours.
    @_disfavoredOverload
    public static func hours(_ hours: Double) -> Duration { .seconds(hours * 3600) }

    /// Returns a duration of so many days of 24 hours.
    @_disfavoredOverload
    public static func days(_ days: some BinaryInteger) -> Duration { .seconds(days) * 86_400 }

    /// Returns a duration of so many days of 24 hours.
    @_disfavoredOverload
    public static func days(_ days: Double) -> Duration { .seconds(days * 86_400) }
}
