internal import Synchronization

/// What an app does when it goes into the background, where it may be suspended at any moment.
extension Store {
    /// Sees to it that nothing is held that others wait for while the app is suspended.
    func followIntoBackground() {
        background.withLock { watcher in
            if watcher == nil { watcher = BackgroundWatcher { [weak self] in self?.enterBackground() } }
        }
    }

    /// Lets go of the file's locks.
    ///
    /// What was used is not written down: in the middle of that the app might be suspended with the lock of all writers.
    package func enterBackground() { database?.letGoOfReaders() }
}
