#if canImport(Darwin)
internal import Foundation

/// Tells when the app or the extension goes into the background, or comes back, as long as it is held.
///
/// The notifications are known by their names, so that extensions, which have no application, can link this too.
final class BackgroundWatcher: Sendable {
    static let entering = [
        "UIApplicationDidEnterBackgroundNotification", "NSExtensionHostDidEnterBackgroundNotification",
        "WKApplicationDidEnterBackgroundNotification",
    ]
    static let leaving = [
        "UIApplicationWillEnterForegroundNotification", "NSExtensionHostWillEnterForegroundNotification",
        "WKApplicationWillEnterForegroundNotification",
    ]

    private let stop: @Sendable () -> Void

    init(_ names: [String] = BackgroundWatcher.entering, _ body: @escaping @Sendable () -> Void) {
        let tokens = names.map { name in
            ObserverToken(
                NotificationCenter.default.addObserver(
                    forName: Notification.Name(name), object: nil, queue: nil
                ) { _ in body() })
        }
        stop = { for token in tokens { token.remove() } }
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
