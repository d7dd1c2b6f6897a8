// What Swift cannot import by itself: from sqlite3.h variadic functions, function-like macros and reads of memory that
// other processes write, and from the system calls with memory that is mapped twice.
#ifndef LARDER_SQLITE_SHIM_H
#define LARDER_SQLITE_SHIM_H

#include <sqlite3.h>
#include <stdint.h>
#include <string.h>

#if defined(__APPLE__)
#include <fcntl.h>
#include <mach/mach.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>
#elif defined(__linux__)
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#include <errno.h>

// The destructor arguments of sqlite3_bind_*: the bytes stay where they are until the statement is reset, or are copied.
static inline int larder_bind_blob_static(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count) {
    return sqlite3_bind_blob64(statement, index, bytes, count, SQLITE_STATIC);
}
static inline int larder_bind_text_copy(sqlite3_stmt *statement, int index, const char *bytes, sqlite3_uint64 count) {
    return sqlite3_bind_text64(statement, index, bytes, count, SQLITE_TRANSIENT, SQLITE_UTF8);
}
static inline int larder_bind_blob_copy(sqlite3_stmt *statement, int index, const void *bytes, sqlite3_uint64 count) {
    return sqlite3_bind_blob64(statement, index, bytes, count, SQLITE_TRANSIENT);
}

// Switches one of sqlite3_db_config's on/off options; the function is variadic.
static inline int larder_db_config(sqlite3 *database, int option, int value) {
    return sqlite3_db_config(database, option, value, (int *)0);
}

// Takes a commit past the cache of the drive; returns 0, or an error number. Apple's SQLite may carry out its own call for that by a
// barrier, which orders writes and does not wait for them. SQLite locks no byte of the log, so it may be opened and closed.
static inline int larder_sync_log(sqlite3 *database) {
#if defined(__APPLE__)
    const char *path = sqlite3_filename_wal(sqlite3_db_filename(database, "main"));
    int file = path != 0 && *path != 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    // A file that was moved is noticed by the caller.
    if (file < 0) return path != 0 && *path != 0 && errno != ENOENT ? errno : 0;
    int error = fcntl(file, F_FULLFSYNC) == 0 ? 0 : errno;
    // A disk that has no such call.
    if (error == ENOTSUP || error == EINVAL) error = fsync(file) == 0 ? 0 : errno;
    close(file);
    return error;
#else
    (void)database;
    return 0;
#endif
}

// The VFS file of the main database. It belongs to the connection.
static inline sqlite3_file *larder_main_file(sqlite3 *database) {
    sqlite3_file *file = 0;
    if (sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK) return 0;
    return file != 0 && file->pMethods != 0 ? file : 0;
}

// The first region of the write-ahead log's index, shared by every process that has the database open; 0 where the VFS
// has no shared memory.
static inline volatile void *larder_wal_index(sqlite3 *database) {
    sqlite3_file *file = larder_main_file(database);
    volatile void *region = 0;
    if (file == 0 || file->pMethods->iVersion < 2 || file->pMethods->xShmMap == 0) return 0;
    if (file->pMethods->xShmMap(file, 0, 32768, 0, &region) != SQLITE_OK) return 0;
    return region;
}

// Reads the start of the main database's file through its own VFS, so that no second descriptor is opened (closing one
// would drop the process's locks). Returns the file's size, or -1.
static inline sqlite3_int64 larder_read_head(sqlite3 *database, void *bytes, int count) {
    sqlite3_file *file = larder_main_file(database);
    sqlite3_int64 size = 0;
    if (file == 0 || file->pMethods->xFileSize(file, &size) != SQLITE_OK) return -1;
    memset(bytes, 0, (size_t)count);
    int code = file->pMethods->xRead(file, bytes, count, 0);
    return code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ ? size : -1;
}

// The VFS file of the write-ahead log; 0 where it is not open.
static inline sqlite3_file *larder_log_file(sqlite3 *database) {
    sqlite3_file *file = 0;
    if (sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) != SQLITE_OK) return 0;
    return file != 0 && file->pMethods != 0 ? file : 0;
}

// The length of a file, or -1.
static inline sqlite3_int64 larder_file_size(sqlite3_file *file) {
    sqlite3_int64 size = 0;
    return file != 0 && file->pMethods->xFileSize(file, &size) == SQLITE_OK ? size : -1;
}

// Writes to a file through its VFS, at a place of the caller's choice.
static inline int larder_write_at(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    return file == 0 ? SQLITE_IOERR_WRITE : file->pMethods->xWrite(file, bytes, count, offset);
}
static inline int larder_truncate(sqlite3_file *file, sqlite3_int64 size) {
    return file == 0 ? SQLITE_IOERR_TRUNCATE : file->pMethods->xTruncate(file, size);
}
static inline int larder_sync(sqlite3_file *file) {
    return file == 0 ? SQLITE_IOERR_FSYNC : file->pMethods->xSync(file, SQLITE_SYNC_FULL);
}

// Lets other connections open the database again after larder_lock_alone.
static inline void larder_unlock_alone(sqlite3 *database) {
    sqlite3_file *file = larder_main_file(database);
    if (file != 0) file->pMethods->xUnlock(file, SQLITE_LOCK_SHARED);
}

// Locks the database's file against every other connection of every process: each holds a shared lock on it from its
// first statement to its closing. SQLITE_BUSY if there is one. The lock ends when the connection is closed.
static inline int larder_lock_alone(sqlite3 *database) {
    sqlite3_file *file = larder_main_file(database);
    if (file == 0) return SQLITE_NOTFOUND;
    int code = file->pMethods->xLock(file, SQLITE_LOCK_SHARED);
    if (code != SQLITE_OK) return code;
    code = file->pMethods->xLock(file, SQLITE_LOCK_EXCLUSIVE);
    // A refusal leaves the lock that keeps new connections out.
    if (code != SQLITE_OK) larder_unlock_alone(database);
    return code;
}

// Takes the lock that a writer of the log holds, the first of the log's index. larder_unlock_writing gives it back.
static inline int larder_lock_writing(sqlite3 *database) {
    sqlite3_file *file = larder_main_file(database);
    volatile void *region = 0;
    if (file == 0 || file->pMethods->iVersion < 2 || file->pMethods->xShmMap == 0) return SQLITE_NOTFOUND;
    int code = file->pMethods->xShmMap(file, 0, 32768, 1, &region);
    if (code == SQLITE_OK) code = file->pMethods->xShmLock(file, 0, 1, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE);
    if (code != SQLITE_OK) file->pMethods->xShmUnmap(file, 0);
    return code;
}
static inline void larder_unlock_writing(sqlite3 *database) {
    sqlite3_file *file = larder_main_file(database);
    if (file == 0) return;
    file->pMethods->xShmLock(file, 0, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
    file->pMethods->xShmUnmap(file, 0);
}

// Takes the errno that `file`'s last failure left behind, so that a later failure does not find it again: a read behind
// the end is short, which the VFS notes as no error of the system. 0 where there is none.
static inline int larder_take_errno(sqlite3_file *file) {
    int code = 0;
    char byte;
    if (file == 0 || file->pMethods == 0) return 0;
    if (file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &code) != SQLITE_OK || code == 0) return 0;
    file->pMethods->xRead(file, &byte, 1, (sqlite3_int64)1 << 40);
    return code;
}
static inline int larder_take_main_errno(sqlite3 *database) { return larder_take_errno(larder_main_file(database)); }

// The same of the write-ahead log's file.
static inline int larder_take_log_errno(sqlite3 *database) {
    return larder_take_errno(larder_log_file(database));
}

// Maps the page at `region` a second time, so that it can be read after SQLite has unmapped its own; 0 where that cannot
// be done.
static inline void *larder_map_again(volatile void *region) {
#if defined(__APPLE__)
    vm_address_t address = 0;
    vm_prot_t current, maximum;
    kern_return_t code = vm_remap(mach_task_self(), &address, 4096, 0, VM_FLAGS_ANYWHERE, mach_task_self(),
                                  (vm_address_t)region, FALSE, &current, &maximum, VM_INHERIT_NONE);
    return code == KERN_SUCCESS ? (void *)address : 0;
#elif defined(__linux__)
    // An old size of 0 leaves the first mapping in place and makes a second one of the same pages.
    long address = syscall(SYS_mremap, region, (size_t)0, (size_t)4096, 1 /* MREMAP_MAYMOVE */);
    return address == -1 ? 0 : (void *)address;
#else
    return 0;
#endif
}
static inline void larder_unmap(void *address) {
#if defined(__APPLE__)
    vm_deallocate(mach_task_self(), (vm_address_t)address, 4096);
#elif defined(__linux__)
    munmap(address, 4096);
#endif
}

// One copy of the log index's header: 48 bytes that change with every commit of any process.
enum { LARDER_WAL_HEADER_SIZE = 48 };
typedef struct { uint64_t words[6]; } larder_wal_header;

static inline larder_wal_header larder_wal_header_read(const volatile void *region) {
    const volatile uint64_t *words = (const volatile uint64_t *)region;
    larder_wal_header header = {{words[0], words[1], words[2], words[3], words[4], words[5]}};
    return header;
}
// The word that rises by one with each commit.
static inline uint32_t larder_wal_header_changes(larder_wal_header header) { return (uint32_t)header.words[1]; }

// What a reader needs to know of the log itself: its frames, the pages of the database as of the last of them, and how many
// of them are in the main file. The last stands behind the header's two copies. All are in the machine's byte order.
static inline uint32_t larder_wal_frames(const volatile void *region) { return ((const volatile uint32_t *)region)[4]; }
static inline uint32_t larder_wal_pages(const volatile void *region) { return ((const volatile uint32_t *)region)[5]; }
static inline uint32_t larder_wal_moved(const volatile void *region) { return ((const volatile uint32_t *)region)[24]; }

// Linux's number of a file system's kind, that of NFS for all of other machines elsewhere; -1 if it is not to be had.
static inline int64_t larder_file_system(const char *path) {
    struct statfs kind;
    if (statfs(path, &kind) != 0) return -1;
#if defined(__APPLE__)
    return kind.f_flags & MNT_LOCAL ? 0 : 0x6969;
#else
    return (uint32_t)kind.f_type;
#endif
}

#endif
