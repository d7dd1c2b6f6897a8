internal import Dispatch
internal import LarderSQLite
internal import Synchronization

/// Deletes the rows of retired generations, a slice of a few milliseconds at a time, so that readers and writers get
/// their turn; what is left when the process dies goes on at the next opening.
package final class Reclaimer: Sendable {
    private let isAtWork = Atomic(false)

    /// The slices that are being deleted at this moment: their rows, and then the files that they named.
    private let slices = DispatchGroup()

    /// How long somebody waits for the slices of others: one of them may be waiting, too.
    private static let longestWait: Duration = .seconds(5)

    /// How often in a row it failed.
    private let failures = Atomic(0)

    /// How many rows a slice has, and fewer after one that found the volume full.
    private static let rowsPerSlice = 500
    private let rows = Atomic(rowsPerSlice)

    /// The pause between two slices: readers renew their view of the file after each.
    private static let pause: Duration = .milliseconds(20)

    package init() {}

    /// Begins to delete in the background, unless that is going on.
    package func begin(_ store: Store) {
        guard !store.isReadOnly, !isAtWork.exchange(true, ordering: .acquiringAndReleasing) else { return }
        schedule(store, after: .zero)
    }

    private func schedule(_ store: Store, after pause: Duration) {
        _ = store.timekeeper.wake(pause) { [weak self, weak store] in
            guard let self, let store else { return }
            offloadInBackground { self.goOn(store) }
        }
    }

    private func goOn(_ store: Store) {
        // Only readers are left; the next opening of a writer goes on.
        guard !store.isReadOnly else { return isAtWork.store(false, ordering: .releasing) }
        do throws(CacheError) {
            let isMore = try slice(store) != nil
            failures.store(0, ordering: .relaxed)
            if isMore { return schedule(store, after: Self.pause) }
            isAtWork.store(false, ordering: .releasing)
            // Somebody may have retired one after the last look, and found us at work still.
            if try isAnyRetired(store) { begin(store) }
        } catch {
            if error.code == .closed { return isAtWork.store(false, ordering: .releasing) }
            store.notify(.backgroundFailure(error))
            // Still at work: after 2 s, 4 s, and in the end every 256 s.
            isAtWork.store(true, ordering: .releasing)
            let exponent = min(failures.wrappingAdd(1, ordering: .relaxed).newValue, 8)
            schedule(store, after: .seconds(1 << exponent))
        }
    }

    /// Deletes everything that is retired now, on this thread.
    ///
    /// - Parameter progress: Told how many rows of which generation have gone.
    /// - Returns: How many rows went.
    @discardableResult
    package func finish(
        _ store: Store, progress: (_ count: Int, _ generation: Int64) -> Void = { _, _ in }
    ) throws(CacheError) -> Int {
        var count = 0
        while let slice = try slice(store) {
            count += slice.count
            if slice.count > 0 { progress(slice.count, slice.generation) }
        }
        waitForOthers()
        return count
    }

    /// Waits until nobody else is at a slice: its rows have gone, its files perhaps not yet.
    func waitForOthers() {
        _ = slices.wait(timeout: .now() + Self.longestWait / .seconds(1))
    }

    /// Deletes a few slices of what is retired, on this thread.
    ///
    /// - Returns: How many steps that took; 0 if there was nothing.
    func reclaimSome(_ store: Store) throws(CacheError) -> Int {
        var steps = 0
        while steps < 20, try slice(store) != nil { steps += 1 }
        return steps
    }

    /// Whether there is anything to delete.
    package func isAnyRetired(_ store: Store) throws(CacheError) -> Bool {
        try store.read { (connection, _) throws(SQLiteError) in try connection.retiredGeneration() != nil }
    }

    /// Deletes a slice; nil if there is nothing left.
    private func slice(_ store: Store) throws(CacheError) -> (count: Int, generation: Int64)? {
        guard try isAnyRetired(store) else {
            rows.store(Self.rowsPerSlice, ordering: .relaxed)
            return nil
        }
        while true {
            let count = rows.load(ordering: .relaxed)
            do throws(CacheError) {
                return try slice(store, of: count)
            } catch {
                rows.store(try smaller(count, after: error), ordering: .relaxed)
            }
        }
    }

    private func slice(_ store: Store, of limit: Int) throws(CacheError) -> (count: Int, generation: Int64) {
        slices.enter()
        defer { slices.leave() }
        let (went, generation) = try store.write(BlockTraits()) {
            (connection, _) throws(SQLiteError) -> (went: (count: Int, files: [String]), generation: Int64) in
            guard let id = try connection.retiredGeneration() else { return ((0, []), 0) }
            return (try connection.reclaim(id, atMost: limit), id)
        }
        store.giveUp(went.files)
        return (went.count, generation)
    }
}
