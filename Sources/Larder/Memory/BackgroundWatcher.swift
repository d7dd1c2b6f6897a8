#if canImport(Darwin)
internal import Foundation

/// Tells when the app goes into the background, as long as it is held.
///
/// The notification is known by its name, so that extensions, which have no application, can link this too.
final class BackgroundWatcher: Sendable {
    private let stop: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        let name = Notification.Name("UIApplicationDidEnterBackgroundNotification")
        let token = ObserverToken(
            NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { _ in body() })
        stop = { token.remove() }
    }

    deinit {
        stop()
    }
}

/// An observer, which Foundation does not mark as `Sendable`.
private final class ObserverToken: @unchecked Sendable {
    // Safety: it is only ever handed back to the centre, which may be called from any thread. A Mutex does not do: the
    // centre keeps the observer too, so the compiler cannot see it as ours alone.
    private let observer: any NSObjectProtocol

    init(_ observer: any NSObjectProtocol) {
        self.observer = observer
    }

    func remove() { NotificationCenter.default.removeObserver(observer) }
}
#else
/// Elsewhere there is no such moment.
final class BackgroundWatcher: Sendable {
    init(_ body: @escaping @Sendable () -> Void) {}
}
#endif
