@_exported public import LarderCBOR
