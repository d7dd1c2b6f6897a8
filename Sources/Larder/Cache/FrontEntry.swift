/// The part of an entry in memory that a hit needs: with a key of 8 bytes and such a value, half a line of the processor's
/// cache.
@usableFromInline
struct HotEntry<Value: Sendable>: Sendable {
    @usableFromInline var value: Value

    /// Milliseconds since 1970, as in the row.
    @usableFromInline var writtenAt: Int64

    /// The round in which the row was known to be this.
    @usableFromInline var round: UInt32

    /// The kind of its own age plus 1, or 0.
    @usableFromInline var ageKind: UInt32
}

/// What memory knows of one entry, put together from where that is kept.
@usableFromInline
struct FrontEntry<Value: Sendable>: Sendable {
    @usableFromInline var value: Value

    /// Milliseconds since 1970, as in the row.
    @usableFromInline var writtenAt: Int64

    /// When it was read last, or `unknown` where a read asked no clock.
    @usableFromInline var accessedAt: Int64

    /// The moment of the last access as the row has it.
    @usableFromInline var storedAccess: Int64

    /// The row's revision.
    @usableFromInline var revision: Int64

    /// Its place in the order of use; the revision, until it is read.
    @usableFromInline var used: Int64

    /// The milliseconds of its own age, if it has one.
    @usableFromInline var ageMilliseconds: Int64

    /// The round in which the row was known to be this.
    @usableFromInline var round: UInt32

    /// The kind of its own age plus 1, or 0.
    @usableFromInline var ageKind: UInt32

    @inlinable
    init(
        value: Value, writtenAt: Int64, accessedAt: Int64, storedAccess: Int64, revision: Int64, used: Int64,
        age: StoredAge?, round: UInt32
    ) {
        self.value = value
        self.writtenAt = writtenAt
        self.accessedAt = accessedAt
        self.storedAccess = storedAccess
        self.revision = revision
        self.used = used
        self.round = round
        ageMilliseconds = age?.milliseconds ?? 0
        // A kind that there is not counts as without an age, see `StoredAge.rule`.
        ageKind = age.map { (0...3).contains($0.kind) ? UInt32($0.kind) + 1 : 1 } ?? 0
    }

    init(_ hot: HotEntry<Value>, _ stamp: AccessStamp, _ rest: EntryRest, ageMilliseconds: Int64) {
        value = hot.value
        writtenAt = hot.writtenAt
        accessedAt = stamp.moment
        storedAccess = rest.storedAccess
        revision = rest.revision
        used = stamp.number
        self.ageMilliseconds = ageMilliseconds
        round = hot.round
        ageKind = hot.ageKind
    }

    var hot: HotEntry<Value> { HotEntry(value: value, writtenAt: writtenAt, round: round, ageKind: ageKind) }

    var stamp: AccessStamp { AccessStamp(number: used, moment: accessedAt) }

    var rest: EntryRest {
        var rest = EntryRest()
        (rest.revision, rest.storedAccess) = (revision, storedAccess)
        return rest
    }

    @usableFromInline static var unknown: Int64 { NotedUse.unknownMoment }

    /// Its last use, if it was used after it was written.
    var lastUse: NotedUse? { used > revision ? NotedUse(accessedAt: accessedAt, used: used) : nil }

    /// Its own age, if it has one.
    var age: StoredAge? { ageKind == 0 ? nil : StoredAge(kind: Int64(ageKind) - 1, milliseconds: ageMilliseconds) }

    /// The rule of this entry, where those without one of their own follow `rule`.
    func rule(else rule: AgeRule) -> AgeRule {
        age?.rule ?? rule
    }
}
