/// What holds for a store as a whole, as the manager that opened it wants it.
package struct StorePolicy: Sendable {
    /// The bytes that all sub-caches together may come to.
    package var sizeLimit: Int64?

    /// The bytes that are to stay free on the volume.
    package var freeSpaceFloor: Int64?

    /// How long after a write everything is looked after; nil for never.
    package var maintenanceInterval: Duration?

    /// A Boolean value that indicates whether anything limits the disk, so that writes have to be counted.
    var needsCare: Bool { sizeLimit != nil || freeSpaceFloor != nil }

    package init(sizeLimit: Int64? = nil, freeSpaceFloor: Int64? = nil, maintenanceInterval: Duration? = nil) {
        self.sizeLimit = sizeLimit
        self.freeSpaceFloor = freeSpaceFloor
        self.maintenanceInterval = maintenanceInterval
    }
}
