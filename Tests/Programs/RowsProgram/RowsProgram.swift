import Foundation
import LarderStore
import LarderTestSupport

/// Changes rows without end, and prints the number of each change once it is acknowledged: SEED DONE PATH.
@main
struct RowsProgram {
    static func main() throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let seed = UInt64(arguments[1]), let done = Int(arguments[2]) else { exit(2) }
        var model = RowsModel(seed: seed)
        model.advance(to: done)
        let rows = try Store.open(arguments[3]).open(.rows)
        while true {
            try rows.run(model.next())
            print(model.count)
            fflush(nil)
        }
    }
}
