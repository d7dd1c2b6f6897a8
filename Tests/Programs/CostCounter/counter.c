// Functions of the C library and of SQLite that count before they do their work. The linker prefers those of the program.
#define _GNU_SOURCE
#include "counter.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

static __thread struct larder_costs costs;
struct larder_costs larder_costs_so_far(void) { return costs; }
void larder_count_lock(void) { costs.locks += 1; }

#if !defined(__GLIBC__) && defined(__linux__)
#include <features.h>
#endif
#if defined(__GLIBC__) && !defined(SANITIZED)
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/types.h>

struct stat;
struct stat64;
struct statvfs;
struct statvfs64;
struct statfs;
struct statfs64;

int larder_counts(void) { return 1; }

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) { costs.allocations += 1; return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { costs.allocations += 1; return __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { costs.allocations += 1; return __libc_realloc(old, size); }
void *aligned_alloc(size_t alignment, size_t size) { costs.allocations += 1; return __libc_memalign(alignment, size); }
int posix_memalign(void **found, size_t alignment, size_t size) {
    costs.allocations += 1;
    return (*found = __libc_memalign(alignment, size)) ? 0 : 12;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define CALL(type, name, parameters, ...) \
    extern type name parameters; \
    type name parameters { \
        REAL(name); \
        costs.calls += 1; \
        return real(__VA_ARGS__); \
    }

CALL(int, close, (int file), file)
CALL(ssize_t, read, (int file, void *bytes, size_t count), file, bytes, count)
CALL(ssize_t, write, (int file, const void *bytes, size_t count), file, bytes, count)
CALL(ssize_t, pread, (int file, void *bytes, size_t count, off_t at), file, bytes, count, at)
CALL(ssize_t, pread64, (int file, void *bytes, size_t count, off64_t at), file, bytes, count, at)
CALL(off_t, lseek, (int file, off_t at, int from), file, at, from)
CALL(off64_t, lseek64, (int file, off64_t at, int from), file, at, from)
CALL(int, fsync, (int file), file)
CALL(int, fdatasync, (int file), file)
CALL(int, ftruncate, (int file, off_t size), file, size)
CALL(int, ftruncate64, (int file, off64_t size), file, size)
CALL(int, posix_fallocate, (int file, off_t at, off_t size), file, at, size)
CALL(int, posix_fallocate64, (int file, off64_t at, off64_t size), file, at, size)
CALL(int, stat, (const char *path, struct stat *found), path, found)
CALL(int, stat64, (const char *path, struct stat64 *found), path, found)
CALL(int, lstat, (const char *path, struct stat *found), path, found)
CALL(int, lstat64, (const char *path, struct stat64 *found), path, found)
CALL(int, fstat, (int file, struct stat *found), file, found)
CALL(int, fstat64, (int file, struct stat64 *found), file, found)
CALL(int, fstatat, (int folder, const char *path, struct stat *found, int flags), folder, path, found, flags)
CALL(int, fstatat64, (int folder, const char *path, struct stat64 *found, int flags), folder, path, found, flags)
CALL(int, statvfs, (const char *path, struct statvfs *found), path, found)
CALL(int, statvfs64, (const char *path, struct statvfs64 *found), path, found)
CALL(int, statfs, (const char *path, struct statfs *found), path, found)
CALL(int, statfs64, (const char *path, struct statfs64 *found), path, found)
CALL(ssize_t, getrandom, (void *bytes, size_t count, unsigned flags), bytes, count, flags)
CALL(int, access, (const char *path, int mode), path, mode)
CALL(int, unlink, (const char *path), path)
CALL(int, rename, (const char *path, const char *next), path, next)
CALL(int, link, (const char *path, const char *next), path, next)
CALL(int, mkdir, (const char *path, mode_t mode), path, mode)
CALL(int, rmdir, (const char *path), path)
CALL(ssize_t, readlink, (const char *path, char *bytes, size_t count), path, bytes, count)
CALL(void *, mmap, (void *at, size_t count, int use, int flags, int file, off_t from), at, count, use, flags, file, from)
CALL(void *, mmap64, (void *at, size_t count, int use, int flags, int file, off64_t from), at, count, use, flags, file, from)
CALL(int, munmap, (void *at, size_t count), at, count)

#define WRITE(name, offset) \
    extern ssize_t name(int, const void *, size_t, offset); \
    ssize_t name(int file, const void *bytes, size_t count, offset at) { \
        REAL(name); \
        costs.calls += 1; \
        costs.pages += count == 4096; \
        return real(file, bytes, count, at); \
    }

WRITE(pwrite, off_t)
WRITE(pwrite64, off64_t)

// The last parameter may be missing; what is passed then is not read.
#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(name); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        costs.calls += 1; \
        return real(path, flags, mode); \
    }

OPEN(open)
OPEN(open64)

#define CONTROL(name) \
    extern int name(int, int, ...); \
    int name(int file, int command, ...) { \
        REAL(name); \
        va_list rest; \
        va_start(rest, command); \
        void *argument = va_arg(rest, void *); \
        va_end(rest); \
        costs.calls += 1; \
        return real(file, command, argument); \
    }

CONTROL(fcntl)
CONTROL(fcntl64)

extern int sqlite3_stmt_busy(void *);
extern int sqlite3_step(void *);
int sqlite3_step(void *statement) {
    REAL(sqlite3_step);
    costs.statements += !sqlite3_stmt_busy(statement);
    return real(statement);
}
#else
int larder_counts(void) { return 0; }
#endif
