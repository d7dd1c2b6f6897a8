#if LARDER_TSAN
public import LarderTSan

/// In builds for the thread sanitizer: one whose hand-over it sees.
@usableFromInline typealias Mutex<Value: ~Copyable> = LarderTSan.Mutex<Value>
#endif
