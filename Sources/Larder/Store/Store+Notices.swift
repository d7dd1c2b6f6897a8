internal import Synchronization

/// Who is told what happens to the store, and when.
extension Store {
    /// Tells the managers what happened before any of them listened, or on a thread that others were waiting for; unless
    /// this thread still is one.
    package func tellUntold() {
        guard hasUntold.load(ordering: .relaxed), !inside.containCurrent, !live.areOpenedHere else { return }
        let (notices, discards) = untold.withLock { untold in
            defer { untold = ([], Discards()) }
            hasUntold.store(false, ordering: .relaxed)
            return untold
        }
        _ = consume discards
        for notice in notices { notify(notice) }
    }

    /// Tells now, or once this thread may run code of the user's; with what is to be released then.
    package func tell(_ notices: [StoreNotice], releasing discards: Discards = Discards()) {
        if notices.isEmpty, discards.isEmpty { return }
        untold.withLock { untold in
            untold.notices += notices
            untold.discards.add(discards)
            hasUntold.store(true, ordering: .relaxed)
        }
        if !queue.isLedHere { tellUntold() }
    }

    /// Releases what a change put out of memory, now or once this thread may run code of the user's.
    package func release(_ discards: Discards) { tell([], releasing: discards) }

    package func notify(_ notice: StoreNotice) {
        let handlers = listeners.withLock { Array($0.handlers.values) }
        for handler in handlers { handler(notice) }
    }

    /// Adds somebody to tell; the result takes them away again.
    package func listen(_ handler: @escaping @Sendable (StoreNotice) -> Void) -> @Sendable () -> Void {
        let id = listeners.withLock { listeners in
            defer { listeners.next += 1 }
            listeners.handlers[listeners.next] = handler
            return listeners.next
        }
        return { [weak self] in self?.listeners.withLock { $0.handlers[id] = nil } }
    }
}
