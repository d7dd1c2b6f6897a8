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
}
