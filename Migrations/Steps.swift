/// One step of the schema: the SQL that leads from the step before it to `number`.
package struct MigrationStep: Sendable {
    /// What `PRAGMA user_version` says once this step is done; the first is 1.
    package let number: Int32

    /// The name of the file in this folder.
    package let file: String

    /// The statements of the file.
    package let sql: String

    private init(_ number: Int32, _ file: String, _ bytes: [UInt8]) {
        self.number = number
        self.file = file
        self.sql = String(decoding: bytes, as: UTF8.self)
    }

    /// Every step, in order.
    ///
    /// A step that has landed is never changed; a new one is added at the end.
    package static let all: [MigrationStep] = [
        MigrationStep(1, "0001_initial.sql", PackageResources._001_initial_sql),
        MigrationStep(2, "0002_opener.sql", PackageResources._002_opener_sql),
        MigrationStep(3, "0003_order.sql", PackageResources._003_order_sql),
        MigrationStep(4, "0004_note.sql", PackageResources._004_note_sql),
        MigrationStep(5, "0005_key-kind.sql", PackageResources._005_key_kind_sql),
    ]
}
