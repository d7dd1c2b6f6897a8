/// A curve that scenarios give the points of.
struct Curve {
    let name: String
    let title: String
    let remark: String
    let axis: CurveChart.Axis

    static let all = [
        Curve(
            name: "entries-memory-get", title: "A hit in memory, by the number of entries",
            remark: "Keys at random.", axis: .number),
        Curve(
            name: "entries-disk-get", title: "A hit on disk, by the number of entries",
            remark: "Values of 300 bytes, keys at random, nothing kept in memory.", axis: .number),
        Curve(
            name: "entries-disk-set", title: "A replaced value, by the number of entries",
            remark: "Values of 300 bytes, keys at random. Each is committed by itself.", axis: .number),
        Curve(
            name: "size-set", title: "A replaced value, by its size", remark: "Each is committed by itself.",
            axis: .bytes),
        Curve(
            name: "size-get", title: "A hit on disk, by the value's size", remark: "Nothing kept in memory.",
            axis: .bytes),
        Curve(
            name: "threads-memory-get", title: "Hits in one cache in memory, by the number of threads",
            remark: "Time until all are through, for each hit.", axis: .number),
        Curve(
            name: "threads-disk-get", title: "Hits on disk, by the number of threads",
            remark: "Time until all are through, for each hit; SQLite has a connection for each thread.", axis: .number),
        Curve(
            name: "threads-set", title: "Sets, by the number of threads",
            remark: "Time until all are through, for each set; each waits for its own commit.", axis: .number),
    ]
}
