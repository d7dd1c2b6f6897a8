public import Foundation
internal import LarderStore

extension CacheManager {
    /// Whether a store may be changed.
    public enum Access: Sendable {
        /// Made if it is missing, read and written.
        case readWrite
        /// Read only: nothing on disk changes, and writes throw ``CacheError/Code/readOnly``.
        case readOnly
    }

    /// What a write that has returned survives.
    public enum Durability: Sendable {
        /// The death of the process.
        ///
        /// A crash of the system or a power cut may lose what was committed since the log was last copied, and large values
        /// that were replaced or removed since then; never consistency.
        case processCrash
        /// The loss of power as well: each write waits for the disk.
        case powerLoss
    }

    /// What becomes of a damaged database.
    public enum Recovery: Sendable {
        /// Every entry that can be read goes into a new store, the original is set aside as `<name>.sqlite.corrupt…`, and an
        /// event says so.
        case recreate
        /// Opening, or the call that met the damage, throws ``CacheError/Code/corrupt``, and nothing is changed.
        case fail
    }

    /// What becomes of a store that a newer release of the library wrote.
    public enum NewerSchema: Sendable {
        /// Opening throws ``CacheError/Code/newerSchema``, and nothing is changed.
        case fail
        /// It is set aside like a damaged one, and a new store is made.
        case recreate
    }

    /// How a manager works.
    ///
    /// The defaults are meant for apps and servers alike.
    ///
    /// When several managers of a process share a store, `durability`, `recovery`, `newerSchema`, `busyTimeout`,
    /// `maintenanceInterval`, `sizeLimit` and `freeSpaceFloor` are those of the one that opened it; `access` and `log`
    /// are each manager's own. So is `clock` for its handles; what the store does by itself goes by the opener's.
    public struct Configuration: Sendable {
        /// What time it is.
        ///
        /// The system's clock by default.
        public var clock: @Sendable () -> Date {
            get { injectedClock ?? SystemClock.date }
            set { injectedClock = newValue }
        }

        /// Whether the store may be changed.
        public var access: Access

        /// What a write that has returned survives.
        public var durability: Durability

        /// What becomes of a damaged database.
        public var recovery: Recovery

        /// What becomes of a store that a newer release of the library wrote.
        public var newerSchema: NewerSchema

        /// How long a call waits while another process holds the database, before it throws ``CacheError/Code/busy``.
        public var busyTimeout: Duration

        /// How long after a write the store is looked after as by `maintain()`; nil for never.
        ///
        /// A store in which nothing is written, not even which entries were read, has no timer.
        public var maintenanceInterval: Duration?

        /// The bytes that all sub-caches together may come to, by the measure of ``Cache/sizeOnDisk``; nil for any.
        ///
        /// It holds while running, with an overshoot of at most a tenth by one process, least recently used first.
        public var sizeLimit: Int64?

        /// The bytes that are to stay free on the store's volume; nil, the default, for no such care.
        ///
        /// When less is free, the least recently used entries go until it is met, or nothing is left that is not
        /// pinned. It is looked at with every 4 MiB written, and by `maintain()`.
        public var freeSpaceFloor: Int64?

        #if canImport(Darwin)
        /// The protection of the store's files while the device is locked; nil leaves it to the system.
        public var fileProtection: FileProtectionType?
        #endif

        /// Where messages for the program's log go.
        ///
        /// Nowhere by default. Called outside locks, on any thread; what happens on that thread meanwhile is told by the events
        /// alone.
        public var log: @Sendable (LogMessage) -> Void

        /// Nil when nobody gave a clock: then hits may read a cheaper one.
        package var injectedClock: (@Sendable () -> Date)?

        /// The time that has passed, in milliseconds; nil for the system's, or for that of an injected clock.
        package var uptime: (@Sendable () -> Int64)?

        /// How intervals are waited for; tests move time by hand.
        package var wake = Timekeeper.system.wake

        /// A configuration, each part with its default.
        ///
        /// - Parameters:
        ///   - clock: What time it is; nil for the system's clock.
        ///   - access: Whether the store may be changed.
        ///   - durability: What a write that has returned survives.
        ///   - recovery: What becomes of a damaged database.
        ///   - newerSchema: What becomes of a store that a newer release of the library wrote.
        ///   - busyTimeout: How long a call waits for another process.
        ///   - maintenanceInterval: How long after a write the store is looked after; nil for never.
        ///   - sizeLimit: The bytes that all sub-caches together may come to; nil for any.
        ///   - freeSpaceFloor: The bytes that are to stay free on the store's volume; nil for no such care.
        ///   - log: Where messages for the program's log go.
        public init(
            clock: (@Sendable () -> Date)? = nil, access: Access = .readWrite, durability: Durability = .processCrash,
            recovery: Recovery = .recreate, newerSchema: NewerSchema = .fail, busyTimeout: Duration = .seconds(5),
            maintenanceInterval: Duration? = .seconds(60), sizeLimit: Int64? = nil, freeSpaceFloor: Int64? = nil,
            log: @escaping @Sendable (LogMessage) -> Void = { _ in }
        ) {
            injectedClock = clock
            self.access = access
            self.durability = durability
            self.recovery = recovery
            self.newerSchema = newerSchema
            self.busyTimeout = busyTimeout
            self.maintenanceInterval = maintenanceInterval
            self.sizeLimit = sizeLimit
            self.freeSpaceFloor = freeSpaceFloor
            self.log = log
        }

        #if canImport(Darwin)
        /// A configuration with a protection of the store's files while the device is locked; see the other form.
        public init(
            clock: (@Sendable () -> Date)? = nil, access: Access = .readWrite, durability: Durability = .processCrash,
            recovery: Recovery = .recreate, newerSchema: NewerSchema = .fail, busyTimeout: Duration = .seconds(5),
            maintenanceInterval: Duration? = .seconds(60), sizeLimit: Int64? = nil, freeSpaceFloor: Int64? = nil,
            fileProtection: FileProtectionType?, log: @escaping @Sendable (LogMessage) -> Void = { _ in }
        ) {
            // A form of its own, and no default for what only these systems have: a list of parameters has no conditions.
            self.init(
                clock: clock, access: access, durability: durability, recovery: recovery, newerSchema: newerSchema,
                busyTimeout: busyTimeout, maintenanceInterval: maintenanceInterval, sizeLimit: sizeLimit,
                freeSpaceFloor: freeSpaceFloor, log: log)
            self.fileProtection = fileProtection
        }
        #endif

        var timekeeper: Timekeeper { Timekeeper(clock: injectedClock, uptime: uptime, wake: wake) }

        /// The time of the store.
        var storeTime: StoreTime {
            let now: @Sendable () -> Int64 =
                if let injectedClock {
                    { SystemClock.milliseconds(of: injectedClock()) }
                } else {
                    { SystemClock.coarseNow() }
                }
            return StoreTime(now: now) { [wake] delay, action in
                let wakeup = wake(.milliseconds(delay), action)
                return { wakeup.cancel() }
            }
        }

        /// Throws if a number makes no sense.
        func check() throws(CacheError) {
            for (name, number) in [("sizeLimit", sizeLimit), ("freeSpaceFloor", freeSpaceFloor)] {
                if let number, number < 0 { throw Self.refusal(name, "\(number)") }
            }
            if busyTimeout < .zero { throw Self.refusal("busyTimeout", "\(busyTimeout)") }
            if let maintenanceInterval, maintenanceInterval <= .zero {
                throw CacheError(
                    .invalidConfiguration,
                    "The option `maintenanceInterval` is \(maintenanceInterval). Use a longer one, or nil for never.")
            }
        }

        private static func refusal(_ option: String, _ value: String) -> CacheError {
            CacheError(.invalidConfiguration, "The option `\(option)` is \(value). Use zero or more.")
        }

        /// The options of the store.
        func storeOptions(_ report: @escaping @Sendable (StoreEvent) -> Void) -> Store.Options {
            var options = Store.Options()
            options.durability = durability == .powerLoss ? .powerLoss : .processCrash
            options.busyTimeout = SystemClock.saturated(busyTimeout / .milliseconds(1))
            options.time = storeTime
            options.isReadOnly = access == .readOnly
            options.recovery = recovery == .recreate ? .salvage : .fail
            options.replacesNewerSchema = newerSchema == .recreate
            options.runsUpkeep = maintenanceInterval != nil
            options.upkeepInterval = maintenanceInterval.map { SystemClock.saturated($0 / .milliseconds(1)) }
            options.report = report
            return options
        }
    }
}
