#if canImport(Darwin)
internal import Dispatch

/// Apple's source of memory pressure.
package final class PressureSource: Sendable {
    /// The source, which some releases of Dispatch mark as `Sendable`.
    private final class Source: @unchecked Sendable {
        // Safety: it is set before the source starts, and only cancelled afterwards, which any thread may do. A Mutex does not
        // do: Dispatch keeps the source too, so the compiler cannot see it as ours alone.
        let source: any DispatchSourceMemoryPressure
        init(_ source: any DispatchSourceMemoryPressure) { self.source = source }
    }

    private let held: Source

    private init(_ source: any DispatchSourceMemoryPressure) { held = Source(source) }

    /// Begins to watch the system.
    package static func system(_ notify: @escaping @Sendable (MemoryPressure) -> Void) -> PressureSource? {
        let source = DispatchSource.makeMemoryPressureSource(
            eventMask: [.warning, .critical], queue: .global(qos: .utility))
        let watched = PressureSource(source)
        source.setEventHandler { [weak watched] in
            guard let event = watched?.held.source.data else { return }
            notify(event.contains(.critical) ? .critical : .warning)
        }
        source.activate()
        return watched
    }

    deinit { held.source.cancel() }
}
#elseif os(Linux)
internal import Foundation

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The kernel's pressure stall triggers: files that raise `POLLPRI` when tasks waited too long for memory.
///
/// A trigger's window is 2 s, of which a process without privileges may ask a multiple. Where the kernel has none, or
/// does not let us, there is nothing to watch, and nothing is said about it.
package final class PressureSource: Sendable {
    /// A descriptor that raises `POLLPRI`, and what that means.
    package struct Trigger: Sendable {
        let descriptor: CInt
        let level: MemoryPressure

        package init(descriptor: CInt, level: MemoryPressure) {
            self.descriptor = descriptor
            self.level = level
        }
    }

    /// Begins to watch the system, or gives nil where there is nothing to watch.
    package static func system(_ notify: @escaping @Sendable (MemoryPressure) -> Void) -> PressureSource? {
        system(stallMicroseconds: 200_000, notify)
    }

    /// The same from a given time on that tasks waited within a window.
    package static func system(
        stallMicroseconds stall: Int, _ notify: @escaping @Sendable (MemoryPressure) -> Void
    ) -> PressureSource? {
        files(pressureFiles(), stallMicroseconds: stall, notify)
    }

    /// Begins to watch those of these files that can be opened; gives nil where none can.
    package static func files(
        _ paths: [String], stallMicroseconds stall: Int, _ notify: @escaping @Sendable (MemoryPressure) -> Void
    ) -> PressureSource? {
        let triggers = paths.flatMap { path in
            [
                open(path, stall: "some \(stall) 2000000", level: .warning),
                open(path, stall: "full \(stall) 2000000", level: .critical),
            ].compactMap(\.self)
        }
        return triggers.isEmpty ? nil : PressureSource(triggers, notify: notify)
    }

    /// Begins to watch triggers, as long as the process lives.
    package init(_ triggers: [Trigger], notify: @escaping @Sendable (MemoryPressure) -> Void) {
        let thread = Thread { Self.watch(triggers, notify) }
        thread.name = "Larder memory pressure"
        thread.stackSize = 256 << 10
        thread.start()
    }

    private static func watch(_ triggers: [Trigger], _ notify: (MemoryPressure) -> Void) {
        var polled = triggers.map { pollfd(fd: $0.descriptor, events: Int16(POLLPRI), revents: 0) }
        while polled.contains(where: { $0.fd >= 0 }) {
            guard poll(&polled, nfds_t(polled.count), -1) >= 0 || errno == EINTR else { return }
            var level: MemoryPressure?
            for index in triggers.indices where polled[index].revents != 0 {
                if polled[index].revents & Int16(POLLPRI) != 0, level != .critical { level = triggers[index].level }
                // A group that was removed raises an error forever; poll ignores negative descriptors.
                if polled[index].revents & Int16(POLLERR | POLLNVAL) != 0 { polled[index].fd = -1 }
            }
            if let level { notify(level) }
        }
    }

    /// The files of the process's own control group and of the whole system.
    private static func pressureFiles() -> [String] {
        var files = ["/proc/pressure/memory"]
        if let groups = FileManager.default.contents(atPath: "/proc/self/cgroup") {
            for line in String(decoding: groups, as: UTF8.self).split(separator: "\n") where line.hasPrefix("0::") {
                files.append("/sys/fs/cgroup\(line.dropFirst(3))/memory.pressure")
            }
        }
        return files
    }

    private static func open(_ path: String, stall: String, level: MemoryPressure) -> Trigger? {
        let descriptor = Foundation.open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        // The kernel wants the terminating zero too.
        guard write(descriptor, stall, stall.utf8.count + 1) > 0 else {
            close(descriptor)
            return nil
        }
        return Trigger(descriptor: descriptor, level: level)
    }
}
#else
/// A system without a source of memory pressure.
package final class PressureSource: Sendable {
    /// Nothing to watch.
    package static func system(_ notify: @escaping @Sendable (MemoryPressure) -> Void) -> PressureSource? { nil }
}
#endif
