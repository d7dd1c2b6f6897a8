/// Where the sub-caches that a manager opened report what nobody asked for.
final class Reporter: Sendable {
    let hub: EventHub
    private let log: @Sendable (LogMessage) -> Void

    init(hub: EventHub, log: @escaping @Sendable (LogMessage) -> Void) {
        self.hub = hub
        self.log = log
    }

    func report(_ event: CacheEvent, _ level: LogMessage.Level, error: CacheError? = nil) {
        log(LogMessage(level, event.message, error: error))
        hub.send(event)
    }

    func note(_ message: LogMessage) { log(message) }
}
