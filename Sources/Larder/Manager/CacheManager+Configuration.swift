public import Foundation
package import LarderStore

extension CacheManager {
    /// The access of a manager to its store.
    public enum Access: Sendable {
        /// Reads and writes; the store is created if it is missing.
        case readWrite
        /// Reads only: nothing on disk changes, and writes throw ``CacheError/Code/readOnly``.
        case readOnly
    }

    /// The failures that a completed write survives.
    public enum Durability: Sendable {
        /// The death of the process.
        ///
        /// A crash of the system or a loss of power can undo the writes since the log was last copied. Large values
        /// that were written, replaced or removed shortly before can be lost as well. The store stays consistent:
        /// reading an entry whose large value is lost returns nil.
        case processCrash
        /// The death of the process, a crash of the system and a loss of power: each write waits for the disk.
        case powerLoss
    }

    /// The treatment of a damaged database.
    public enum Recovery: Sendable {
        /// Copies every entry that can be read to a new database, and renames the damaged file.
        ///
        /// The damaged file becomes `<name>.sqlite.damaged`, in place of an older file of that name. The event
        /// ``CacheEvent/Kind/recovered(setAside:)`` reports it.
        case recreate
        /// Throws ``CacheError/Code/corrupt``, at opening or from the call that meets the damage, and changes nothing.
        case fail
    }

    /// The treatment of a store that a newer release of the library wrote.
    public enum NewerSchema: Sendable {
        /// Throws ``CacheError/Code/newerSchema`` at opening, and changes nothing.
        case fail
        /// Creates an empty database, and renames the newer file to `<name>.sqlite.damaged`.
        ///
        /// A file of that name is replaced. The event ``CacheEvent/Kind/recovered(setAside:)`` reports it.
        case recreate
    }

    /// The options of a manager.
    ///
    /// The defaults suit apps and servers alike.
    ///
    /// Two managers on one path, in one process or in two, each have a store of their own, and each sees what the other
    /// has committed. Each option belongs to one manager, with two exceptions: ``sizeLimit`` and ``freeSpaceFloor`` are
    /// stored in the file. The latest open for writing sets them for all managers, also if it sets nil.
    public struct Configuration: Sendable {
        /// Returns the current time; the system's clock by default.
        public var clock: @Sendable () -> Date {
            get { injectedClock ?? SystemClock.date }
            set { injectedClock = newValue }
        }

        /// The access to the store; ``CacheManager/Access/readWrite`` by default.
        public var access: Access

        /// The failures that a completed write survives; ``CacheManager/Durability/processCrash`` by default.
        public var durability: Durability

        /// The treatment of a damaged database; ``CacheManager/Recovery/recreate`` by default.
        public var recovery: Recovery

        /// The treatment of a store that a newer release of the library wrote.
        ///
        /// The default is ``CacheManager/NewerSchema/fail``.
        public var newerSchema: NewerSchema

        /// The maximum time that a call waits for another process or manager; 5 seconds by default.
        ///
        /// If the database is still locked then, the call throws ``CacheError/Code/busy``.
        public var busyTimeout: Duration

        /// The maximum time from a write to the next automatic maintenance; 60 seconds by default.
        ///
        /// Maintenance comes sooner if entries expire or rows are retired. While nothing can be due, there is no timer.
        /// If the interval is nil, there is no automatic maintenance, only that of `maintain()`. Expired values then
        /// also stay in memory until they are deleted or evicted.
        public var maintenanceInterval: Duration?

        /// The maximum number of bytes of all caches, as ``Cache/sizeOnDisk`` counts them; nil, the default, for no
        /// limit.
        ///
        /// The store checks the limit after each write, and deletes expired entries first, then the least recently
        /// used. Pinned entries stay. If another process writes at the same time, the check can come a second later.
        /// Writing an entry that is larger than the limit throws ``CacheError/Code/tooLarge``.
        public var sizeLimit: Int64?

        /// The minimum number of bytes that stay free on the disk of the store; nil, the default, for no minimum.
        ///
        /// The store checks the free space after each write and in each maintenance. If less is free, it
        /// deletes expired entries of all caches first, then the least recently used. Pinned entries stay. If that
        /// frees too little, the next check after a write comes a minute later. What Apple's systems could purge does not count
        /// as free.
        public var freeSpaceFloor: Int64?

        #if canImport(Darwin)
        /// The protection of the store's files while the device is locked; nil, the default, leaves it to the system.
        public var fileProtection: FileProtectionType?

        /// Whether the manager is suspended while the app is in the background, see ``CacheManager/suspend()``; nil, the
        /// default, means that it is if its store is in the container of an app group.
        ///
        /// The system ends an app that is suspended with a lock on a file in such a container.
        public var suspendsInBackground: Bool?

        /// A Boolean value that indicates whether backups leave the store's files out.
        ///
        /// The system leaves out its caches directory in any case. False, the default, changes nothing about a file.
        public var excludesFromBackup = false
        #endif

        /// Receives the messages for the program's log; by default ``LogMessage/standardLog``.
        ///
        /// The default writes warnings and errors to standard error, on Apple's platforms to the unified log. With `{ _ in }`
        /// the library is silent.
        ///
        /// The closure is called on any thread while no lock is held, except that the body of an update or a
        /// transaction holds the writer. Messages that its own calls cause on that thread go to the events alone.
        public var log: @Sendable (LogMessage) -> Void {
            get { ownLog ?? LogMessage.standardLog }
            set { ownLog = newValue }
        }

        /// Is told of each call of this manager and its caches that takes at least ``traceThreshold``; nil, the default, for none.
        ///
        /// It is told of calls of the store and of waits for a thread that reads, of loads of the program, and of calls of a shared
        /// tier. What memory answers takes no time. A closure that hangs is told of once it returns.
        ///
        /// The closure is called on the thread of the call, which may hold the writer, and it may not call the manager.
        public var trace: (@Sendable (CacheTrace) -> Void)?

        /// The time from which on ``trace`` is told of a call; 50 milliseconds by default, and zero for each call.
        public var traceThreshold: Duration

        /// The log that the program has set; nil for the standard one.
        var ownLog: (@Sendable (LogMessage) -> Void)?

        /// The clock that the program has set; nil for the system's, so that hits can read a cheaper one.
        package var injectedClock: (@Sendable () -> Date)?

        /// Waits for intervals; tests replace it to move time by hand.
        package var schedule: Timekeeper.Schedule?

        /// Creates a configuration; each option that is left out has its default.
        ///
        /// - Parameters:
        ///   - clock: Returns the current time; nil for the system's clock.
        ///   - access: The access to the store.
        ///   - durability: The failures that a completed write survives.
        ///   - recovery: The treatment of a damaged database.
        ///   - newerSchema: The treatment of a store that a newer release of the library wrote.
        ///   - busyTimeout: The maximum time that a call waits for another process or manager.
        ///   - maintenanceInterval: The maximum time from a write to the next automatic maintenance; nil for none.
        ///   - sizeLimit: The maximum number of bytes of all caches together; nil for no limit.
        ///   - freeSpaceFloor: The minimum number of bytes that stay free on the disk of the store; nil for no minimum.
        ///   - log: Receives the messages for the program's log; nil for the standard log.
        ///   - trace: Is told of calls that take long; nil for none.
        ///   - traceThreshold: The time from which on it is told of a call.
        public init(
            clock: (@Sendable () -> Date)? = nil, access: Access = .readWrite, durability: Durability = .processCrash,
            recovery: Recovery = .recreate, newerSchema: NewerSchema = .fail, busyTimeout: Duration = .seconds(5),
            maintenanceInterval: Duration? = .seconds(60), sizeLimit: Int64? = nil, freeSpaceFloor: Int64? = nil,
            log: (@Sendable (LogMessage) -> Void)? = nil, trace: (@Sendable (CacheTrace) -> Void)? = nil,
            traceThreshold: Duration = .milliseconds(50)
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
            ownLog = log
            (self.trace, self.traceThreshold) = (trace, traceThreshold)
        }

        #if canImport(Darwin)
        /// Creates a configuration with the options of Apple's systems; each option that is left out has its default.
        ///
        /// - Parameters:
        ///   - clock: Returns the current time; nil for the system's clock.
        ///   - access: The access to the store.
        ///   - durability: The failures that a completed write survives.
        ///   - recovery: The treatment of a damaged database.
        ///   - newerSchema: The treatment of a store that a newer release of the library wrote.
        ///   - busyTimeout: The maximum time that a call waits for another process or manager.
        ///   - maintenanceInterval: The maximum time from a write to the next automatic maintenance; nil for none.
        ///   - sizeLimit: The maximum number of bytes of all caches together; nil for no limit.
        ///   - freeSpaceFloor: The minimum number of bytes that stay free on the disk of the store; nil for no minimum.
        ///   - log: Receives the messages for the program's log; nil for the standard log.
        ///   - trace: Is told of calls that take long; nil for none.
        ///   - traceThreshold: The time from which on it is told of a call.
        ///   - fileProtection: The protection of the files while the device is locked; nil leaves it to the system.
        ///   - suspendsInBackground: Whether the manager is suspended in the background; nil for a store of an app group.
        ///   - excludesFromBackup: A Boolean value that indicates whether backups leave the files out.
        public init(
            clock: (@Sendable () -> Date)? = nil, access: Access = .readWrite, durability: Durability = .processCrash,
            recovery: Recovery = .recreate, newerSchema: NewerSchema = .fail, busyTimeout: Duration = .seconds(5),
            maintenanceInterval: Duration? = .seconds(60), sizeLimit: Int64? = nil, freeSpaceFloor: Int64? = nil,
            log: (@Sendable (LogMessage) -> Void)? = nil, trace: (@Sendable (CacheTrace) -> Void)? = nil,
            traceThreshold: Duration = .milliseconds(50), fileProtection: FileProtectionType? = nil,
            suspendsInBackground: Bool? = nil, excludesFromBackup: Bool = false
        ) {
            self.init(
                clock: clock, access: access, durability: durability, recovery: recovery, newerSchema: newerSchema,
                busyTimeout: busyTimeout, maintenanceInterval: maintenanceInterval, sizeLimit: sizeLimit,
                freeSpaceFloor: freeSpaceFloor, log: log, trace: trace, traceThreshold: traceThreshold)
            (self.fileProtection, self.suspendsInBackground) = (fileProtection, suspendsInBackground)
            self.excludesFromBackup = excludesFromBackup
        }
        #endif

        var timekeeper: Timekeeper { Timekeeper(clock: injectedClock, schedule: schedule) }

        /// The time as the store reads it.
        var storeTime: StoreTime {
            injectedClock == nil ? StoreTime(timekeeper, now: { SystemClock.coarseNow() }) : StoreTime(timekeeper)
        }

        /// Throws if a number is out of range.
        func check() throws(CacheError) {
            for (name, number) in [("sizeLimit", sizeLimit), ("freeSpaceFloor", freeSpaceFloor)] {
                if let number, number < 0 { throw Self.refusal(name, "\(number)") }
            }
            for (name, time) in [("busyTimeout", busyTimeout), ("traceThreshold", traceThreshold)] where time < .zero {
                throw Self.refusal(name, "\(time)")
            }
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
            options.opener = (ProcessInfo.processInfo.processName, CacheManager.libraryVersion)
            options.report = report
            options.trace = trace.map { trace in
                let threshold = SystemClock.saturated(traceThreshold / .nanoseconds(1))
                return StoreTrace(threshold: threshold) { trace(CacheTrace($0)) }
            }
            #if canImport(Darwin)
            if fileProtection != nil || excludesFromBackup {
                options.protect = FileAttributes.setting(fileProtection, excludesFromBackup: excludesFromBackup)
            }
            #endif
            return options
        }
    }
}
