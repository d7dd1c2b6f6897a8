import Foundation

/// What got better or worse between two runs, as ratios of ratios.
///
/// The yardstick takes the machine out of it: a run on a slower one has the same ratios, about.
struct Comparison {
    let text: String

    init(_ old: Report, _ new: Report) {
        var changed: [(change: Double, cells: [String])] = []
        var same = 0
        for row in new.rows {
            guard let before = old[row.scenario]?.ratio, let now = row.ratio, before > 0 else { continue }
            let change = now / before
            // Within what either run saw by itself it is noise, and so is a twentieth.
            let noise = max(0.05, old[row.scenario]?.ratioSpread ?? 0, row.ratioSpread ?? 0)
            guard max(change, 1 / change) > 1 + noise else {
                same += 1
                continue
            }
            changed.append(
                (
                    change,
                    [
                        row.scenario, Table.number(before), Table.number(now), Table.number(change),
                        change > 1 ? "worse" : "better", row.target.map(Table.number) ?? "-",
                        row.isGood.map { $0 ? "ok" : "MISSED" } ?? "",
                    ]
                ))
        }
        let head = ["scenario", "ratio then", "now", "now/then", "", "target", ""]
        let rows = changed.sorted { $0.change > $1.change }.map(\.cells)
        var lines = ["then: \(old.machine.text)", "now:  \(new.machine.text)", ""]
        if !rows.isEmpty { lines += [Table([head] + rows).text, ""] }
        lines.append("\(rows.count) changed by more than the noise, \(same) did not.")
        let (before, now) = (Set(old.rows.map(\.scenario)), Set(new.rows.map(\.scenario)))
        let (gone, added) = (before.subtracting(now).sorted(), now.subtracting(before).sorted())
        if !gone.isEmpty { lines.append("Not run now: \(gone.joined(separator: ", "))") }
        if !added.isEmpty { lines.append("Not run then: \(added.joined(separator: ", "))") }
        text = lines.joined(separator: "\n")
    }
}
