internal import LarderCSQLite

/// File systems of other machines, with which this one shares no memory.
package enum NetworkDisk {
    /// Returns whether a folder is on one.
    package static func holds(_ folder: String) -> Bool { has(larder_file_system(folder)) }

    /// Returns whether Linux has a number for NFS, SMB, CIFS, AFS, Coda, Ceph or 9P.
    ///
    /// FUSE has one number for local and for remote disks, so SSHFS is not among them.
    package static func has(_ kind: Int64) -> Bool {
        [0x6969, 0x517B, 0xFE53_4D42, 0xFF53_4D42, 0x5346_414F, 0x7375_7245, 0x00C3_6400, 0x0102_1997].contains(kind)
    }
}
