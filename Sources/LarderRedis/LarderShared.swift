@_exported public import LarderShared
