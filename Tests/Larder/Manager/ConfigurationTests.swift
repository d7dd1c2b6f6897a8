import Foundation
import Larder
import LarderTestSupport
import Testing

struct ConfigurationTests {
    @Test func `a configuration is made in one call, part by part`() throws {
        let folder = try TemporaryFolder()
        let moment = Date(timeIntervalSince1970: 1_000_000)
        let told = Told<String>()
        let configuration = CacheManager.Configuration(
            clock: { moment }, access: .readOnly, durability: .powerLoss, recovery: .fail, newerSchema: .recreate,
            busyTimeout: .seconds(1), maintenanceInterval: nil, sizeLimit: 5, freeSpaceFloor: 6,
            log: { told.add($0.text) })
        #expect(configuration.clock() == moment)
        #expect(configuration.access == .readOnly && configuration.durability == .powerLoss)
        #expect(configuration.recovery == .fail && configuration.newerSchema == .recreate)
        #expect(configuration.busyTimeout == .seconds(1) && configuration.maintenanceInterval == nil)
        #expect(configuration.sizeLimit == 5 && configuration.freeSpaceFloor == 6)
        let error = #expect(throws: CacheError.self) {
            try CacheManager(url: folder("none.sqlite"), configuration: configuration)
        }
        #expect(error?.code == .storageUnavailable)
        #expect(try folder.names.isEmpty)
    }

    @Test func `what is left out has its default`() {
        for configuration in [
            CacheManager.Configuration(), .init(clock: nil), .init(access: .readWrite), .init(sizeLimit: nil),
        ] {
            #expect(configuration.injectedClock == nil)
            #expect(configuration.access == .readWrite && configuration.durability == .processCrash)
            #expect(configuration.recovery == .recreate && configuration.newerSchema == .fail)
            #expect(configuration.busyTimeout == .seconds(5) && configuration.maintenanceInterval == .seconds(60))
            #expect(configuration.sizeLimit == nil && configuration.freeSpaceFloor == nil)
        }
    }
}
