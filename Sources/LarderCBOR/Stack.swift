import Foundation
import LarderLocks

/// The part of the calling thread's stack that is left.
///
/// Nested values recurse through code of other modules, whose frames have any size. So a count of levels alone cannot
/// show when a stack of half a megabyte ends. The limits of the stack are read once in a call, and only for values that
/// are nested more deeply than most. On the main thread of Linux, the system reads a file for that.
///
/// Safety: The address of a local is compared and never dereferenced. `pthread_getattr_np` is looked up by its name and
/// cast to the type that the C library documents.
struct CBORStack {
    /// The addresses of the stack that was looked up; empty before.
    private var limits: Range<UInt> = 0..<0

    /// The depth up to which the stack is not looked at: it takes less room than one call may rely on.
    static let trustedDepth = 16
    /// The bytes that stay free for the next level, for the leaves below it and for the way back with an error.
    private static let reserve: UInt = 96 << 10
    /// The maximum depth on a stack with unknown limits, for example one that a program switched to.
    private static let unknownDepth = 48

    /// Returns whether one more level fits, at `depth`.
    @inline(never)
    mutating func hasRoom(depth: Int) -> Bool {
        guard depth < CBORFormat.maximumDepth else { return false }
        let here = Self.here()
        // A kept decoder may be used on another thread.
        if !limits.contains(here) { limits = Self.limits() }
        guard limits.contains(here) else { return depth < Self.unknownDepth }
        return here - limits.lowerBound > Self.reserve
    }

    /// An address in the frame of this call.
    @inline(never)
    private static func here() -> UInt {
        var local: UInt8 = 0
        return withUnsafeMutablePointer(to: &local) { UInt(bitPattern: $0) }
    }

    private static func limits() -> Range<UInt> {
        #if canImport(Darwin)
        let top = UInt(bitPattern: pthread_get_stackaddr_np(pthread_self()))
        let size = UInt(pthread_get_stacksize_np(pthread_self()))
        return size < top ? top - size..<top : 0..<0
        #else
        guard let getAttributes else { return 0..<0 }
        let attributes = UnsafeMutablePointer<pthread_attr_t>.allocate(capacity: 1)
        defer { attributes.deallocate() }
        guard getAttributes(pthread_self(), attributes) == 0 else { return 0..<0 }
        defer { pthread_attr_destroy(attributes) }
        var base: UnsafeMutableRawPointer?
        var size = 0
        guard pthread_attr_getstack(attributes, &base, &size) == 0, size > 0 else { return 0..<0 }
        let bottom = UInt(bitPattern: base)
        return bottom..<bottom + UInt(size)
        #endif
    }

    #if !canImport(Darwin)
    private typealias GetAttributes =
        @convention(c) (pthread_t, UnsafeMutablePointer<pthread_attr_t>) -> Int32

    /// `pthread_getattr_np`, which the C library's header declares only for GNU's own dialect.
    private static let getAttributes: GetAttributes? =
        dlsym(nil, "pthread_getattr_np").map { unsafeBitCast($0, to: GetAttributes.self) }
    #endif
}

/// The working state of a coder, which can be used again.
protocol CBORReusableState: AnyObject {
    /// Releases the objects of the state that hold the state.
    func finish()
}

/// Keeps one state per coder from call to call, because buffer and frames are half of the cost of a small value.
///
/// No thread waits for another: one that finds the pool in use or empty creates a state of its own. Copies of a coder share
/// the pool.
///
/// Safety: `idle` is used by the thread alone that has set `isInUse`. A thread that gives a state away doesn't use it any
/// more, and `take` hands it to one caller. A state keeps nothing of the values it worked on. A decoder or container that was
/// kept prevents its state from being given; an encoder's is closed, and refuses to write.
final class CBORStatePool<State: CBORReusableState>: @unchecked Sendable {
    /// The state that no coder works on.
    private var idle: State?
    private let isInUse = Atomic(false)

    /// Takes the idle state, which then belongs to the caller alone.
    func take() -> State? {
        if isInUse.exchange(true, ordering: .acquiring) { return nil }
        defer { isInUse.store(false, ordering: .releasing) }
        return idle.take()
    }

    /// Stores `state` in place of one that another thread may have left.
    func give(_ state: State) {
        var dropped: State? = state
        if !isInUse.exchange(true, ordering: .acquiring) {
            swap(&idle, &dropped)
            isInUse.store(false, ordering: .releasing)
        }
        // Frames hold their state: without `finish` the two would keep each other alive.
        dropped?.finish()
    }

    deinit {
        idle?.finish()
    }
}
