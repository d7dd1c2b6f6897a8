internal import Foundation
internal import LarderLocks

/// The lock of the store whose caches are shared with other nodes: one store of one process at a time.
///
/// A second one would mark messages as read that this one has not applied. It is released while the store is suspended, and a store that
/// takes it in that time puts another name into the file.
package final class SharingLock: Sendable {
    private struct State {
        var count = 0
        var held: HeldLock?
    }

    private let file: LockFile?
    private let name = Data(UUID().uuidString.utf8)
    private let state = Mutex(State())
    private let lossCount = Atomic(0)

    init(_ path: String?) { file = path.map { LockFile(path: $0 + LockFile.sharingSuffix) } }

    /// How many times another store has had the lock while this one was suspended.
    package var losses: Int { lossCount.load(ordering: .acquiring) }

    /// Takes the lock, again too, and returns whether no other store has it.
    package func take() throws(StoreError) -> Bool {
        guard let file else { return true }
        return try StoreError.translating {
            try state.withLock { state in
                if state.held == nil {
                    guard let held = try file.hold(until: Deadline(in: 0)) else { return false }
                    try name.write(to: URL(fileURLWithPath: file.path))
                    state.held = held
                }
                state.count += 1
                return true
            }
        }
    }

    /// Returns what ``take()`` has taken.
    package func leave() {
        guard let file else { return }
        state.withLock { state in
            state.count -= 1
            if state.count > 0 { return }
            state.held?.release { file.delete() }
            state.held = nil
        }
    }

    /// Releases the lock, at a suspension or the end of the store.
    func pause() {
        state.withLock { state in
            state.held?.release()
            state.held = nil
        }
    }

    /// Takes the lock again, if it was taken before the suspension.
    func resume() {
        guard let file else { return }
        state.withLock { state in
            if state.count == 0 || state.held != nil { return }
            do {
                let held = try file.hold(until: Deadline(in: 0), creates: false)
                if try held != nil && Data(contentsOf: URL(fileURLWithPath: file.path)) == name { state.held = held }
            } catch {}
            if state.held == nil { lossCount.add(1, ordering: .releasing) }
        }
    }
}
