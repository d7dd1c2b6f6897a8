#if LARDER_TSAN
public import LarderTSan

/// In builds for the thread sanitizer: a mutex whose hand-over the sanitizer sees.
@usableFromInline typealias Mutex<Value: ~Copyable> = LarderTSan.Mutex<Value>
#endif
