// Linked with the modules of the library, which are compiled for libFuzzer too; see run.sh.

import Larder

/// What the fuzzer's bytes do to a cache and to a naive model of it, which must stay equal.
private struct Machine<Key: Hashable & Sendable> {
    let cache: MemoryCache<Key, Int>
    let key: (Int) -> Key
    var model: [(number: Int, value: Int, cost: Int)] = []
    var countLimit = Int.max
    var costLimit = Int.max
    var generator: MemoryCacheGenerator<Key, Int>?

    init(_ key: @escaping (Int) -> Key) {
        cache = MemoryCache(
            countLimit: .max, costLimit: .max, maxAge: .unlimited, clearsOnMemoryPressure: false,
            seed: HashSeed(first: 1, second: 2), injectedClock: nil)
        self.key = key
    }

    mutating func run(_ bytes: UnsafeBufferPointer<UInt8>) {
        var step = 0
        while step + 1 < bytes.count {
            let number = Int(bytes[step + 1])
            apply(bytes[step], number, step)
            step += 2
            check(isThorough: step % 32 == 0)
        }
        check(isThorough: true)
    }

    private mutating func apply(_ operation: UInt8, _ number: Int, _ step: Int) {
        let place = model.firstIndex { $0.number == number }
        switch operation % 12 {
        case 0, 1:
            precondition(cache[key(number)] == place.map { model[$0].value }, "another value")
            if let place { model.append(model.remove(at: place)) }
        case 2, 3, 4:
            let cost = Int(operation) / 12
            cache.setValue(step, forKey: key(number), cost: cost)
            if let place { model.remove(at: place) }
            if cost <= costLimit && countLimit > 0 { model.append((number, step, cost)) }
            enforce()
        case 5, 6:
            let removed = cache.removeValue(forKey: key(number))
            precondition(removed == place.map { model.remove(at: $0).value }, "another value removed")
        case 7:
            countLimit = operation > 128 ? .max : number
            cache.countLimit = countLimit
            enforce()
        case 8:
            costLimit = operation > 128 ? .max : number
            cache.costLimit = costLimit
            enforce()
        case 9:
            cache.trim(toCount: number)
            model.removeFirst(max(0, model.count - number))
        case 10:
            if operation > 240 {
                cache.removeAll()
                model = []
            } else {
                let removed = cache.removeAll { _, value in value % 5 == number % 5 }
                let before = model.count
                model.removeAll { $0.value % 5 == number % 5 }
                precondition(removed == before - model.count, "another number removed")
            }
        default:
            if generator == nil { generator = cache.makeIterator() }
            if let (found, value) = generator?.next() {
                precondition(
                    model.contains { key($0.number) == found && $0.value == value }, "a pass gave what is not there")
            } else {
                generator = nil
            }
        }
    }

    private mutating func enforce() {
        while model.count > countLimit || model.reduce(0, { $0 + $1.cost }) > costLimit { model.removeFirst() }
    }

    private func check(isThorough: Bool) {
        precondition(cache.count == model.count, "another count")
        precondition(cache.totalCost == model.reduce(0) { $0 + $1.cost }, "another cost")
        guard isThorough else { return }
        precondition(cache.orderedValues == model.map(\.value), "another order")
        cache.checkInvariants()
    }
}

/// Keys that share their hashes in groups, so that clusters are long.
private struct GroupedKey: Hashable, Sendable {
    let number: Int

    func hash(into hasher: inout Hasher) { hasher.combine(number % 5) }
}

/// Integers whose fast hashes lie close together under the machine's seed.
private let crowdedIntegers: [Int] = {
    let seed = HashSeed(first: 1, second: 2)
    var found: [Int] = []
    var candidate = 0
    while found.count < 256 {
        if seed.hash(candidate) >> 57 == 127 { found.append(candidate) }
        candidate += 1
    }
    return found
}()

/// Called by libFuzzer: the first byte chooses the kind of key, the rest are steps.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMemory(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 1 else { return 0 }
    let steps = UnsafeBufferPointer(start: start + 1, count: count - 1)
    switch start[0] % 4 {
    case 0: run(steps) { $0 }
    case 1: run(steps) { crowdedIntegers[$0] }
    case 2: run(steps) { GroupedKey(number: $0) }
    default: run(steps) { "key \($0)" }
    }
    return 0
}

private func run<Key: Hashable & Sendable>(_ steps: UnsafeBufferPointer<UInt8>, _ key: @escaping (Int) -> Key) {
    var machine = Machine(key)
    machine.run(steps)
}
