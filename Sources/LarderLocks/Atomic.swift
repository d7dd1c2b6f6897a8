// Sources import this module alone, in every kind of build.
#if !canImport(Darwin)
@_exported public import struct Synchronization.Atomic
#endif
