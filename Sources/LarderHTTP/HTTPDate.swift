/// A moment of a field, which has one of three forms.
enum HTTPDate {
    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    private static let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    private static let longDays = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]

    /// Returns the milliseconds since 1970 of a moment; nil for what has none of the forms.
    ///
    /// - Parameter now: Decides the century of a year with two digits.
    static func milliseconds(_ text: String, now: Int64) -> Int64? {
        let text = text.lowercased()
        let parts = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        // "Sun, 06 Nov 1994 08:49:37 GMT"
        if parts.count == 6, parts[5] == "gmt", let day = parts[0].dropping(","), days.contains(day) {
            return moment(parts[3], 4, parts[2], parts[1], parts[4])
        }
        // "Sunday, 06-Nov-94 08:49:37 GMT"
        if parts.count == 4, parts[3] == "gmt", let day = parts[0].dropping(","), longDays.contains(day) {
            let date = parts[1].split(separator: "-", omittingEmptySubsequences: false).map(String.init)
            guard date.count == 3, let short = number(date[2], 2) else { return nil }
            // More than fifty years ahead is in the past.
            let year = year(of: now)
            var full = year / 100 * 100 + short
            if full > year + 50 { full -= 100 }
            return moment("\(full)", 4, date[1], date[0], parts[2])
        }
        // "Sun Nov  6 08:49:37 1994"
        var words = parts
        if words.count == 6, words[2].isEmpty { words.remove(at: 2) }
        if words.count == 5, days.contains(words[0]) {
            let day = words[2].count == 1 ? "0" + words[2] : words[2]
            return moment(words[4], 4, words[1], day, words[3])
        }
        return nil
    }

    /// The moment in the form that is sent.
    static func text(_ milliseconds: Int64) -> String {
        let seconds = milliseconds.dividedDown(by: 1000)
        let day = seconds.dividedDown(by: 86_400)
        let (year, month, date) = civil(day)
        let second = seconds - day * 86_400
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let weekday = Int(((day + 3) % 7 + 7) % 7)
        return capitalized(days[weekday]) + ", \(two(date)) \(capitalized(months[Int(month) - 1])) \(year)"
            + " \(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60)) GMT"
    }

    private static func capitalized(_ word: String) -> String { word.prefix(1).uppercased() + word.dropFirst() }

    private static func number(_ text: String, _ digits: Int) -> Int64? {
        guard text.utf8.count == digits, text.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }) else { return nil }
        return Int64(text)
    }

    private static func moment(
        _ year: String, _ digits: Int, _ month: String, _ day: String, _ time: String
    ) -> Int64? {
        let clock = time.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard clock.count == 3, let year = number(year, digits), let day = number(day, 2),
            let month = months.firstIndex(of: month), let hour = number(clock[0], 2),
            let minute = number(clock[1], 2), let second = number(clock[2], 2), day >= 1, day <= 31, hour < 24,
            minute < 60, second <= 60
        else { return nil }
        return (days(year, Int64(month) + 1, day) * 86_400 + hour * 3600 + minute * 60 + second) * 1000
    }

    /// The days from 1970 to a date of the Gregorian calendar, with years that begin in March.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let year = month <= 2 ? year - 1 : year
        let era = year.dividedDown(by: 400)
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = shifted.dividedDown(by: 146_097)
        let day = shifted - era * 146_097
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365
        let dayOfYear = day - (365 * year + year / 4 - year / 100)
        let month = (5 * dayOfYear + 2) / 153
        return (
            year + era * 400 + (month >= 10 ? 1 : 0), month + (month < 10 ? 3 : -9),
            dayOfYear - (153 * month + 2) / 5 + 1
        )
    }

    private static func year(of milliseconds: Int64) -> Int64 { civil(milliseconds.dividedDown(by: 86_400_000)).year }
}

extension Int64 {
    fileprivate func dividedDown(by other: Int64) -> Int64 {
        let result = self / other
        return self % other < 0 ? result - 1 : result
    }
}

extension String {
    /// The text without an ending; nil if it does not end so.
    fileprivate func dropping(_ suffix: String) -> String? { hasSuffix(suffix) ? String(dropLast(suffix.count)) : nil }
}
