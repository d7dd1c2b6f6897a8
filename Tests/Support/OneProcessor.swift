import Foundation

/// A machine of one processor, as far as a program that runs on it can tell: its tasks have a pool of one thread.
///
/// The pool is as wide as the system says that there are processors, whichever of them the program may use.
package enum OneProcessor {
    /// Whether long tests run, and this system lets us say so.
    package static let isAvailable =
        LongTests.areEnabled && Namespaces.allow(wrapper + ["sh", "-c", "test $(getconf _NPROCESSORS_CONF) = 1"])

    /// What stands before a program's words.
    package static let wrapper = [
        "unshare", "-rm", "sh", "-c",
        """
        mount -t tmpfs none /sys/devices/system/cpu && cd /sys/devices/system/cpu && mkdir cpu0 || exit 1
        for list in possible present online; do echo 0 >$list; done
        cd / && exec taskset -c 0 "$@"
        """, "sh",
    ]
}
