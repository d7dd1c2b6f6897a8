// Sources import this module alone, in every kind of build.
@_exported public import struct Synchronization.Atomic
