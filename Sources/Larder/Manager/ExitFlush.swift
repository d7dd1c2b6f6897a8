internal import Dispatch
internal import Foundation
internal import Synchronization

/// Writes down which entries were read when the process ends while stores are open, as those of global managers are.
enum ExitFlush {
    /// How long the end of the process waits at most: whoever ends it may hold what the flush waits for.
    private static let patience: Duration = .seconds(1)

    /// Sees to it, once in a process; false where the system does not take it.
    static let isArranged = process != 0 && atexit { ExitFlush.run() } == 0

    /// Whose stores these are.
    private static let process = getpid()

    private static func run() {
        // A child that was forked has no right to its parent's connections.
        guard getpid() == process else { return }
        let isDone = DispatchSemaphore(value: 0)
        // On a thread of its own: this one may be inside anything.
        Thread.detachNewThread {
            for store in StoreRegistry.shared.writableStores {
                for ledger in store.live.all { ledger.flushAtEnd() }
            }
            isDone.signal()
        }
        _ = isDone.wait(atMost: patience)
    }
}

extension RowLedger {
    /// Writes down what was read, where that goes.
    fileprivate func flushAtEnd() {
        do throws(CacheError) {
            try flushUses()
        } catch {
            // An order of use is not worth a word from a process that ends.
        }
    }
}
