#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

/// The current thread.
package enum CurrentThread {
    /// A number that no other thread has while this one lives.
    package static var identity: UInt {
        #if canImport(Darwin)
        UInt(bitPattern: pthread_self())
        #else
        UInt(pthread_self())
        #endif
    }

    /// Lets other threads run first.
    package static func yield() { sched_yield() }

    /// Waits, for conditions that the system cannot report.
    package static func pause(milliseconds: Int32) { poll(nil, 0, milliseconds) }
}
