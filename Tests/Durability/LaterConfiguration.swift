import Foundation
import Larder
import LarderTestSupport

extension CacheManager.Configuration {
    /// For a look at a store that others left: by its clock each file is two hours old, and no upkeep is automatic.
    ///
    /// Maintenance deletes files without rows if they are an hour old. So no other process may write in the meantime.
    static var later: Self {
        var configuration = Self.patient
        configuration.clock = { Date() + 7200 }
        configuration.maintenanceInterval = nil
        return configuration
    }
}

extension TemporaryFolder {
    /// The names of files of a store that was salvaged.
    var salvagedNames: [String] {
        get throws { try names.filter { $0.contains(".damaged") || $0.contains(".salvaged") } }
    }
}
