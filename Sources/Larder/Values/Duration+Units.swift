extension Duration {
    /// Returns a duration of so many minutes.
    public static func minutes(_ minutes: some BinaryInteger) -> Duration { .seconds(minutes) * 60 }

    /// Returns a duration of so many minutes.
    public static func minutes(_ minutes: Double) -> Duration { .seconds(minutes * 60) }

    /// Returns a duration of so many hours.
    public static func hours(_ hours: some BinaryInteger) -> Duration { .seconds(hours) * 3600 }

    /// Returns a duration of so many hours.
    public static func hours(_ hours: Double) -> Duration { .seconds(hours * 3600) }

    /// Returns a duration of so many days of 24 hours.
    public static func days(_ days: some BinaryInteger) -> Duration { .seconds(days) * 86_400 }

    /// Returns a duration of so many days of 24 hours.
    public static func days(_ days: Double) -> Duration { .seconds(days * 86_400) }
}
