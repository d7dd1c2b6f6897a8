/// One thing that is measured, of the subject and of what it is compared with, in the same run.
struct Scenario {
    let name: String
    /// What a sample is counted in.
    let unit: String
    /// The greatest ratio of subject to yardstick that is good, or nil if none was set.
    let target: Double?
    /// The place on a curve, if it is a point of one.
    let point: Point?
    /// The subject first, the yardstick second, then whatever is worth seeing beside them.
    let variants: [Variant]

    init(
        _ name: String, unit: String = "ns", target: Double? = nil, point: Point? = nil, _ variants: [Variant]
    ) {
        self.name = name
        self.unit = unit
        self.target = target
        self.point = point
        self.variants = variants
    }
}

/// A place on a curve of cost.
struct Point: Codable {
    let curve: String
    /// How many, or how large.
    let place: Double
}

extension Scenario {
    /// The same with fewer variants.
    func limited(to count: Int) -> Scenario {
        Scenario(name, unit: unit, target: target, point: point, Array(variants.prefix(count)))
    }
}

/// One way of doing it.
struct Variant {
    let name: String
    /// Takes one sample, prepared outside the time.
    let sample: () -> Double
    /// Whether each sample needs a process that did nothing else before.
    let needsProcess: Bool

    /// Measured by itself, in whatever unit the scenario has.
    init(_ name: String, sample: @escaping () -> Double) {
        self.init(name, needsProcess: false, sample: sample)
    }

    /// Measured by itself, if need be each time in a process that did nothing else before.
    init(_ name: String, needsProcess: Bool, sample: @escaping () -> Double) {
        self.name = name
        self.sample = sample
        self.needsProcess = needsProcess
    }

    /// Nanoseconds per operation over state that is made anew for each sample, and released outside the time.
    init<State>(
        _ name: String, operations: Int, eachTime make: @escaping () -> State, _ body: @escaping (State) -> Void
    ) {
        self.init(name) {
            let state = make()
            return nanoseconds(per: operations) { body(state) }
        }
    }

    /// Nanoseconds per operation over state that is made once, with the first sample.
    init<State>(
        _ name: String, operations: Int, once make: @escaping () -> State, _ body: @escaping (State) -> Void
    ) {
        let kept = Lazily(make)
        self.init(name) {
            let state = kept.value
            return nanoseconds(per: operations) { body(state) }
        }
    }
}

/// The time of a body, divided by the number of operations in it.
func nanoseconds(per operations: Int, _ body: () -> Void) -> Double {
    let time = ContinuousClock().measure(body)
    let (seconds, attoseconds) = time.components
    return (Double(seconds) * 1e9 + Double(attoseconds) / 1e9) / Double(operations)
}

/// Keeps the optimiser from dropping what nobody reads.
@inline(never)
func consume<T>(_ value: T) {}

/// A value that is made when it is first asked for.
final class Lazily<State> {
    private let make: () -> State
    lazy var value = make()

    init(_ make: @escaping () -> State) {
        self.make = make
    }
}
