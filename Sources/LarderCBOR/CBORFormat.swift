/// The numbers of RFC 8949 that both directions use.
package enum CBORFormat {
    /// The major types, shifted to their place in an item's first byte.
    package enum Major {
        package static let unsigned: UInt8 = 0 << 5
        package static let negative: UInt8 = 1 << 5
        package static let bytes: UInt8 = 2 << 5
        package static let text: UInt8 = 3 << 5
        package static let array: UInt8 = 4 << 5
        package static let map: UInt8 = 5 << 5
        package static let tag: UInt8 = 6 << 5
        package static let simple: UInt8 = 7 << 5
    }

    static let `false`: UInt8 = 0xF4
    static let `true`: UInt8 = 0xF5
    static let null: UInt8 = 0xF6
    static let undefined: UInt8 = 0xF7
    static let half: UInt8 = 0xF9
    static let single: UInt8 = 0xFA
    static let double: UInt8 = 0xFB
    static let stop: UInt8 = 0xFF
    static let emptyMap: UInt8 = 0xA0
    static let emptyArray: UInt8 = 0x80

    /// Registered tags, and three private ones that another reader may skip.
    ///
    /// The registry has no range for private use: tags from 32768 on are assigned on request. The private tags are not
    /// registered. They are in a range without known assignments, between 55800 and 65535, which is never valid. They
    /// are part of the storage format and never change their meaning. No other reader needs them.
    enum Tag {
        static let dateText: UInt64 = 0
        static let epochDate: UInt64 = 1
        static let positiveBignum: UInt64 = 2
        static let negativeBignum: UInt64 = 3
        static let decimalFraction: UInt64 = 4
        static let url: UInt64 = 32
        static let uuid: UInt64 = 37

        /// A number of seconds since 2001-01-01, for dates that a number of seconds since 1970 would change.
        static let referenceDate: UInt64 = 60161
        /// `[relative, base]`: a URL that has a base.
        static let relativeURL: UInt64 = 60162
        /// Around a null, once for each optional that is not nil itself: `.some(.none)` has one, `.none` has none.
        static let wrappedNil: UInt64 = 60163
    }

    /// The maximum depth of nested values in both directions, however large the stack is; see `CBORStack`.
    static let maximumDepth = 512

    /// The seconds from 1970 to 2001: the difference between Foundation's two ways to count a date.
    static let secondsTo2001 = 978_307_200.0
}
