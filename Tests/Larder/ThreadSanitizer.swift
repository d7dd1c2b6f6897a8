#if LARDER_TSAN
internal import LarderTSan

/// In builds for the thread sanitizer: one whose hand-over it sees.
typealias Mutex<Value: ~Copyable> = LarderTSan.Mutex<Value>
#endif
