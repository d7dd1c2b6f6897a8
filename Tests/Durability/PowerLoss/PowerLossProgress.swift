import LarderTestSupport

/// How far the process had come, and what its store may hold.
struct PowerLossProgress {
    private var work: MixedWork
    /// After each step, and after one more than was acknowledged.
    private var steps: [MixedWork.Step] = []
    private var states = [MixedWork.State()]
    private(set) var acknowledged = 0
    /// The last step of which is known that everything up to it was copied into the database.
    private(set) var copied = 0

    init(work: MixedWork) {
        self.work = work
        more()
    }

    private mutating func more() {
        steps.append(work.next())
        states.append(states[states.count - 1].after(steps[steps.count - 1]))
    }

    mutating func note(_ call: FileTrace.Call) {
        for line in (call.said ?? "").split(separator: "\n") {
            guard let number = Int(line) else { continue }
            acknowledged = number
            if number % MixedWork.stepsPerCopy == 0 { copied = number }
            if case .maintain = steps[number - 1] { copied = number }
            more()
        }
    }

    /// What may be there if nothing up to a step may be lost.
    func states(from step: Int) -> ArraySlice<MixedWork.State> { states[step...] }

    /// Whether it is that state but for large values, so many at most.
    func isSame(_ found: MixedWork.State, as state: MixedWork.State, butFor misses: Int) -> Bool {
        guard found.version == state.version else { return false }
        let counts = [lost(found, state, \.values), lost(found, state, \.others)]
        return counts.allSatisfy { $0 != nil } && counts.reduce(0) { $0 + ($1 ?? 0) } <= misses
    }

    /// How many are not there that may be lost; nil if there is another difference.
    private func lost(
        _ found: MixedWork.State, _ state: MixedWork.State, _ part: KeyPath<MixedWork.State, [Int: MixedWork.Item]>
    ) -> Int? {
        guard found[keyPath: part].allSatisfy({ state[keyPath: part][$0.key] == $0.value }) else { return nil }
        let missing = state[keyPath: part].filter { found[keyPath: part][$0.key] == nil }
        let areLarge = missing.allSatisfy { $0.value.text.utf8.count + 3 > MixedWork.inlineLimit }
        return areLarge ? missing.count : nil
    }

    /// How what was found differs from the state that was copied, and from the last one.
    func difference(_ found: MixedWork.State) -> String {
        [copied, acknowledged].map { step in
            let state = states[step]
            let values = Set(state.values.keys).union(found.values.keys).filter { state.values[$0] != found.values[$0] }
            let others = Set(state.others.keys).union(found.others.keys).filter { state.others[$0] != found.others[$0] }
            return "\(step): version \(state.version) \(found.version), \(values.sorted()), \(others.sorted())"
        }.joined(separator: "; ")
    }
}
