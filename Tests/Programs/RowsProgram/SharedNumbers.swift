import Foundation
import LarderLocks
import LarderTestSupport

/// Numbers in a file that several processes have in memory.
///
/// Safety: the mapping stays until the process ends, and is used through atomics alone.
struct SharedNumbers {
    private let start: UnsafeMutablePointer<Atomic<Int>>

    /// - Parameter path: A file of at least 4,096 bytes.
    init(_ path: String) throws {
        let file = open(path, O_RDWR)
        let page = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
        guard file >= 0, let page, page != MAP_FAILED else { throw CocoaError(.fileReadUnknown) }
        start = page.assumingMemoryBound(to: Atomic<Int>.self)
    }

    /// Waits until `count` programs have called this.
    func meet(_ count: Int) throws {
        start[8].add(1, ordering: .sequentiallyConsistent)
        try Waiting.until { self[8] >= count }
    }

    subscript(index: Int) -> Int {
        get { start[index].load(ordering: .sequentiallyConsistent) }
        nonmutating set { start[index].store(newValue, ordering: .sequentiallyConsistent) }
    }
}
