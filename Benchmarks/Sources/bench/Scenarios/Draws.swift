import Foundation

/// Random draws from a list of keys, new ones for each sample.
///
/// An order that repeats is learned by the processor, together with the order in which a cache stores what it reads.
final class Draws {
    enum Distribution { case uniform, zipf }

    private let count: Int
    private var generator = SeededGenerator(seed: 43)
    /// The sums of the weights up to each key; nil where all weights are equal.
    private let sums: [Double]?

    /// - Parameter distribution: `zipf` draws the key of rank r with a probability that is proportional to 1 / r^0.99.
    init(of count: Int, _ distribution: Distribution = .uniform) {
        self.count = count
        guard distribution == .zipf else {
            sums = nil
            return
        }
        var sum = 0.0
        sums = (1...count).map { rank in
            sum += pow(Double(rank), -0.99)
            return sum
        }
    }

    /// So many keys of a list with as many.
    func callAsFunction<Key>(_ keys: [Key]) -> [Key] { callAsFunction(keys.count, of: keys) }

    func callAsFunction<Key>(_ number: Int, of keys: [Key]) -> [Key] { (0..<number).map { _ in keys[next()] } }

    private func next() -> Int {
        guard let sums, let total = sums.last else { return Int.random(in: 0..<count, using: &generator) }
        let wanted = Double.random(in: 0..<total, using: &generator)
        var (low, high) = (0, count - 1)
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] > wanted { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
