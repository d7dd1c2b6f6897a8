/// A keyed container that is created for a frame.
protocol CBORFrameContainer {
    associatedtype Frame: AnyObject
    init(frame: Frame)
}

extension CBORKeyedEncoding: CBORFrameContainer {}
extension CBORKeyedDecoding: CBORFrameContainer {}

/// Creates the encoding containers for one type of key.
///
/// The type of the container is part of the maker's own type. Without it, each container looks up that type and one of
/// its conformances in the tables of the runtime. Together that takes a tenth of the time of a small struct.
final class CBOREncodingMaker<Key, Container: KeyedEncodingContainerProtocol & CBORFrameContainer>
where Container.Key == Key, Container.Frame == CBOREncodingFrame {
    @inline(never)
    func container(_ frame: CBOREncodingFrame) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Container(frame: frame))
    }
}

/// Creates the decoding containers for one type of key; see `CBOREncodingMaker`.
final class CBORDecodingMaker<Key, Container: KeyedDecodingContainerProtocol & CBORFrameContainer>
where Container.Key == Key, Container.Frame == CBORDecodingFrame {
    @inline(never)
    func container(_ frame: CBORDecodingFrame) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Container(frame: frame))
    }
}

/// The makers that a coder used last, by the type of the key.
///
/// Safety: A maker is stored by the identity of its type of key, and each coder creates makers by one function alone.
/// So a stored maker has the requested type.
struct CBORContainerMakers {
    private var makers: [(key: ObjectIdentifier?, maker: AnyObject?)] = Array(repeating: (nil, nil), count: 32)

    /// Returns the maker for keys of the type `key`, created by `create` if there is none.
    @inline(__always)
    mutating func maker<Maker: AnyObject>(_ key: ObjectIdentifier, _ create: () -> Maker) -> Maker {
        let address = UInt(bitPattern: key)
        let place = Int(truncatingIfNeeded: (address >> 4 ^ address >> 9) & 31)
        if makers[place].key == key, let maker = makers[place].maker { return unsafeDowncast(maker, to: Maker.self) }
        let maker = create()
        makers[place] = (key, maker)
        return maker
    }
}
