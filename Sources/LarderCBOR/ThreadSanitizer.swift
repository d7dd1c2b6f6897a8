#if LARDER_TSAN
internal import LarderTSan

/// A lock whose hand-over the thread sanitizer sees, for builds with it.
typealias Mutex<Value: ~Copyable> = LarderTSan.Mutex<Value>
#endif
