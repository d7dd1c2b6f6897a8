internal import LarderSQLite
internal import Synchronization

/// Copies the log before it grows long.
extension Store {
    /// Sees to it that the log is copied once that pays: in the background, or here and now where writers outrun that.
    func keepLogShort() {
        guard let database, database.wantsCheckpoint else { return }
        if database.isLogTooLong { checkpointByItself() } else { scheduleCheckpoint() }
    }

    private func scheduleCheckpoint() {
        guard !isCheckpointing.exchange(true, ordering: .acquiringAndReleasing) else { return }
        _ = timekeeper.wake(.zero) { [weak self] in
            guard let self else { return }
            let isDone = checkpointByItself()
            // Not before: every commit meanwhile would ask for another one, on a thread of its own.
            _ = isCheckpointing.exchange(false, ordering: .acquiringAndReleasing)
            // What was committed since asked in vain.
            if isDone { keepLogShort() }
        }
    }

    /// Copies the log, for which nobody has asked; false if that failed.
    @discardableResult
    private func checkpointByItself() -> Bool {
        do throws(CacheError) {
            try checkpoint()
            return true
        } catch  where error.code == .closed {
            // Closing checkpoints by itself.
            return false
        } catch {
            let failure = error
            // On a thread of its own: who is told may write, and this one may lead the writes.
            _ = timekeeper.wake(.zero) { [weak self] in self?.notify(.backgroundFailure(failure)) }
            return false
        }
    }
}
