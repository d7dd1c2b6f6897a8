import Foundation
import Larder

/// A command that remembers what it has asked for.
///
/// `Remember [--offline] TOPIC PLACE [SECONDS]` asks a slow service, or with `--offline` only its cache. An answer is good for ten
/// minutes, or for so many seconds.
@main
struct Remember {
    static func main() async throws {
        var words = Array(CommandLine.arguments.dropFirst())
        let isOffline = words.first == "--offline"
        if isOffline { words.removeFirst() }
        guard (2...3).contains(words.count), let age = words.count == 3 ? Double(words[2]) : 600 else {
            print("usage: Remember [--offline] TOPIC PLACE [SECONDS]")
            exit(64)
        }
        let (topic, place) = (words[0], words[1])
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("larder-remember/answers.sqlite")
        let manager = try CacheManager(url: url)
        let answers: Cache<String, Answer> = try await manager.cache(
            named: topic, version: "1", maxAge: .seconds(age), options: CacheOptions(keepsExpired: .seconds(86_400)))

        if isOffline {
            // An old answer is better than none.
            guard let entry = try await answers.entry(forKey: place, allowingExpired: true) else {
                print("Nothing is remembered of the \(topic) in \(place). Ask once without --offline.")
                exit(69)
            }
            print("\(entry.value.text)\(entry.isExpired ? " (old)" : "") (remembered)")
            return try await manager.close()
        }
        let begin = ContinuousClock.now
        let wasKnown = try await answers.contains(place)
        let answer = try await answers.value(forKey: place) { place in try await ask(topic, place) }
        let time = (ContinuousClock.now - begin) / .milliseconds(1)
        if wasKnown {
            let ratio = Int((answer.milliseconds / max(time, 0.001)).rounded())
            print("\(answer.text) (remembered, \(ratio) times as fast as asking)")
        } else {
            print("\(answer.text) (asked)")
        }
        try await manager.close()
    }

    /// Stands for a service at the other end of a slow network.
    private static func ask(_ topic: String, _ place: String) async throws -> Answer {
        let begin = ContinuousClock.now
        try await Task.sleep(for: .milliseconds(300))
        let degrees = place.utf8.reduce(0) { ($0 * 31 + Int($1)) % 30 }
        let text = "The \(topic) in \(place): \(degrees) degrees, a light breeze"
        return Answer(text: text, milliseconds: (ContinuousClock.now - begin) / .milliseconds(1))
    }
}

/// What the service has said, and how long that took.
struct Answer: Codable, Sendable {
    var text: String
    var milliseconds: Double
}
