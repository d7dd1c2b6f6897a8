internal import Foundation
internal import LarderLocks
internal import LarderStore

/// Reports events that no caller asked for, for the caches that a manager opened.
final class Reporter: Sendable {
    let hub: EventHub
    /// The program's log; nil for the standard one, which hears warnings and errors.
    private let log: (@Sendable (LogMessage) -> Void)?
    private let noted = Mutex<Set<String>>([])
    /// The key under which a thread knows that it is inside the log closure of this reporter.
    private var mark: String { "larder.log.\(ObjectIdentifier(self).hashValue)" }

    init(hub: EventHub, log: (@Sendable (LogMessage) -> Void)?) {
        self.hub = hub
        self.log = log
    }

    /// A Boolean value that indicates whether the program hears of what is no warning and no error.
    var isHeard: Bool { log != nil || hub.hasListeners }

    func report(_ event: CacheEvent, _ level: LogMessage.Level, error: CacheError? = nil) {
        report(event, level, error: error, text: event.message)
    }

    /// Sends an event, and writes another text to the log, or nothing.
    func report(_ event: CacheEvent, _ level: LogMessage.Level, error: CacheError?, text: String?) {
        if let text { note(LogMessage(level, text, error: error)) }
        hub.send(event)
    }

    /// Writes a message to the log unless it was written this way before.
    func noteOnce(_ message: LogMessage) {
        if noted.withLock({ $0.insert(message.text).inserted }) { note(message) }
    }

    /// Writes to the log, except from inside the log closure: its own failing writes would be reported without end.
    func note(_ message: LogMessage) {
        guard let log else { return LogMessage.standardLog(message) }
        let (thread, mark) = (Thread.current.threadDictionary, mark)
        if thread[mark] != nil { return }
        thread[mark] = true
        log(message)
        thread[mark] = nil
    }
}
