import Foundation
import LarderSQLite
import LarderTestSupport
import Testing

/// Expects that a store in `time` holds nobody up for longer than it may.
///
/// Whoever asks the store itself, whether it is idle or to copy its log, makes it let go first. Another process cannot ask:
/// once the readers' time is over, it copies all of the log, what was committed after their reads too.
func expectNothingHeld(
    at url: URL, _ time: ManualClock, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    time.advance(by: .seconds(1))
    var other = try Connection.open(.file(url.real.path), .init(role: .writer, busyMilliseconds: 0))
    var guardian = try Connection.open(.file(url.real.path), .init(role: .guardian, busyMilliseconds: 0))
    // A copy is complete beside a reader that has seen the last commit.
    try other.execute("UPDATE cache SET opened_at = opened_at")
    #expect(try other.checkpoint(guardedBy: &guardian), sourceLocation: sourceLocation)
}
