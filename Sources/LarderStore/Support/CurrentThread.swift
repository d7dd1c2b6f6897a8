internal import Foundation

/// The current thread.
package enum CurrentThread {
    /// A number above 0 that no other thread has while this one lives.
    package static var identity: UInt {
        #if canImport(Glibc)
        UInt(pthread_self())
        #else
        UInt(bitPattern: pthread_self())
        #endif
    }

    /// Lets other threads run first.
    package static func yield() { sched_yield() }

    /// Waits, for conditions that the system cannot report.
    package static func pause(milliseconds: Int32) { poll(nil, 0, milliseconds) }
}
