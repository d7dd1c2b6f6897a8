// Measures where a payload is better a file than a blob in its row: `make bench-inline-limit`. Plain SQLite through
// prepared statements, with the tables and the settings of the store; files are read with their checksum, as the store
// does it. The ways are interleaved round by round; medians of the rounds, in microseconds.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 7, LARGEST = 1 << 20, POOL = 32, POOL_BYTES = 16 << 20 };
enum { SIZES = 8 };
static const int sizes[SIZES] = {4, 8, 16, 32, 64, 128, 256, 1024};

// BLOB: in the row. TEMPORARY: a temporary file, renamed; the old one deleted. FRESH: made under its last name; the old
// one deleted. RECYCLED: the old one is renamed into the pool, later overwritten and renamed. RECYCLED_ONCE: the old one
// is renamed to what will be its name, and only overwritten later.
enum { BLOB, TEMPORARY, FRESH, RECYCLED, RECYCLED_ONCE, WAYS };
// The last two are what the first two cost the caller of a store that checkpoints in the background.
enum { SET_NEW, REPLACE, GET, WORKS, SET_NEW_ALONE = WORKS, REPLACE_ALONE, LINES };
static const char *const wayNames[WAYS] = {"blob", "temp+rename", "fresh name", "recycled", "recycled, one rename"};
static const char *const lineNames[LINES] = {"set new", "replace", "get", "set new, no checkpoints",
                                              "replace, no checkpoints"};

typedef struct { char name[40]; } Name;
typedef struct {
    int way, logPages, pooled;
    int64_t rows;
    sqlite3 *writer, *reader, *guardian;
    sqlite3_stmt *set, *get, *keeper, *old;
    Name *files, pool[POOL];
    char folder[32];
} Store;

static uint64_t state = 42;
static uint64_t randomNumber(void) {
    uint64_t z = (state += 0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}
static void fail(const char *what) { perror(what); exit(1); }
static void check(int code, sqlite3 *db) {
    if (code != SQLITE_OK) { fprintf(stderr, "%s\n", sqlite3_errmsg(db)); exit(1); }
}
static void run(sqlite3 *db, const char *sql) { check(sqlite3_exec(db, sql, 0, 0, 0), db); }
static int countPages(void *store, sqlite3 *db, const char *name, int pages) {
    (void)db, (void)name;
    ((Store *)store)->logPages = pages;
    return SQLITE_OK;
}
static uint64_t turn(uint64_t x, int n) { return x << n | x >> (64 - n); }
// XXH64 without its tail: the sizes here are multiples of 32.
static uint64_t checksum(const char *bytes, int size) {
    const uint64_t p = 0x9E3779B185EBCA87, q = 0xC2B2AE3D27D4EB4F;
    uint64_t lane[4] = {p + q, q, 0, -p}, word[4], hash = 0;
    for (int i = 0; i < size; i += 32) {
        memcpy(word, bytes + i, 32);
        for (int l = 0; l < 4; l++) lane[l] = turn(lane[l] + word[l] * q, 31) * p;
    }
    for (int l = 0; l < 4; l++) hash = (hash ^ lane[l]) * p;
    return hash;
}
static sqlite3 *connect(Store *store) {
    sqlite3 *db;
    char path[64];
    snprintf(path, sizeof path, "%s.sqlite", store->folder);
    check(sqlite3_open(path, &db), db);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, 0);
    run(db, "PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"
            "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 4194304;"
            "PRAGMA cache_size = -8192; PRAGMA mmap_size = 0; PRAGMA secure_delete = OFF");
    return db;
}
static void prepare(sqlite3 *db, const char *sql, sqlite3_stmt **statement) {
    check(sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, 0), db);
}
static void openStore(Store *store, int way, int kilobytes, int capacity) {
    *store = (Store){.way = way, .files = calloc((size_t)capacity, sizeof(Name))};
    snprintf(store->folder, sizeof store->folder, "way-%d-%d", way, kilobytes);
    mkdir(store->folder, 0700);
    char path[64];
    for (int i = 0; i < 256; i++) {
        snprintf(path, sizeof path, "%s/%02x", store->folder, i);
        mkdir(path, 0700);
    }
    snprintf(path, sizeof path, "%s/pool", store->folder);
    mkdir(path, 0700);
    store->writer = connect(store);
    run(store->writer,
        "CREATE TABLE entry (id INTEGER PRIMARY KEY, cache INTEGER NOT NULL, key ANY NOT NULL, size INTEGER NOT NULL,"
        "written_at INTEGER NOT NULL, accessed_at INTEGER NOT NULL, age_rule INTEGER, age INTEGER,"
        "is_pinned INTEGER NOT NULL DEFAULT 0, revision INTEGER NOT NULL, file TEXT, checksum INTEGER, extended BLOB,"
        "payload BLOB) STRICT; CREATE UNIQUE INDEX entry_key ON entry (cache, key)");
    store->reader = connect(store);
    store->guardian = connect(store);
    sqlite3_wal_hook(store->writer, countPages, store);
    prepare(store->writer,
            "INSERT INTO entry (cache, key, size, written_at, accessed_at, revision, payload, file, checksum)"
            "VALUES (1, ?1, ?2, 1700000000000, 1700000000000, ?3, ?4, ?5, ?6) ON CONFLICT (cache, key) DO UPDATE SET"
            " size = excluded.size, written_at = excluded.written_at, revision = excluded.revision,"
            " payload = excluded.payload, file = excluded.file, checksum = excluded.checksum", &store->set);
    prepare(store->writer, "SELECT file FROM entry WHERE cache = 1 AND key = ?1", &store->old);
    prepare(store->reader, "SELECT payload, file, checksum FROM entry WHERE cache = 1 AND key = ?1", &store->get);
    prepare(store->reader, "SELECT 1 FROM sqlite_schema LIMIT 1", &store->keeper);
}
static void closeStore(Store *store) {
    sqlite3_finalize(store->set), sqlite3_finalize(store->old), sqlite3_finalize(store->get);
    sqlite3_finalize(store->keeper);
    sqlite3_close(store->writer), sqlite3_close(store->reader), sqlite3_close(store->guardian);
    free(store->files);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s %s.sqlite*", store->folder, store->folder);
    if (system(command) != 0) fail("rm");
}
static char noise[2 * LARGEST], copy[LARGEST];
static const char *payload = noise;
static Name freshName(void) {
    Name fresh;
    uint64_t high = randomNumber(), low = randomNumber();
    snprintf(fresh.name, sizeof fresh.name, "%02x/%016llx%08x", (int)(high >> 56), (unsigned long long)high, (int)low);
    return fresh;
}
static void path(const Store *store, Name name, char result[96]) {
    snprintf(result, 96, "%s/%s", store->folder, name.name);
}
static void writeFile(const char *where, int size, int flags) {
    int file = open(where, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
    if (file < 0) fail(where);
    if (write(file, payload, (size_t)size) != size) fail("write");
    if (!(flags & O_CREAT) && ftruncate(file, size) != 0) fail("ftruncate");
    close(file);
}
static Name writeBeside(Store *store, int size) {
    Name fresh = freshName();
    char last[96], first[96];
    path(store, fresh, last);
    if (store->way == RECYCLED_ONCE && store->pooled) {
        fresh = store->pool[--store->pooled];
        path(store, fresh, last);
        writeFile(last, size, 0);
    } else if (store->way == RECYCLED && store->pooled) {
        path(store, store->pool[--store->pooled], first);
        writeFile(first, size, 0);
        if (rename(first, last) != 0) fail("rename");
    } else if (store->way == TEMPORARY) {
        snprintf(first, sizeof first, "%s/pool/temporary", store->folder);
        writeFile(first, size, O_CREAT | O_EXCL);
        if (rename(first, last) != 0) fail("rename");
    } else {
        writeFile(last, size, O_CREAT | O_EXCL);
    }
    return fresh;
}
static void giveUp(Store *store, Name name, int size) {
    char old[96], pooled[96];
    path(store, name, old);
    int isPooled = store->way >= RECYCLED && store->pooled < POOL && (int64_t)(store->pooled + 1) * size <= POOL_BYTES;
    if (!isPooled) { if (unlink(old) != 0) fail("unlink"); return; }
    Name next = freshName();
    if (store->way == RECYCLED) snprintf(next.name, sizeof next.name, "pool/%016llx", (unsigned long long)randomNumber());
    path(store, next, pooled);
    struct stat status;
    if (rename(old, pooled) != 0 || lstat(pooled, &status) != 0) fail("rename");
    store->pool[store->pooled++] = next;
}
static void bindKey(sqlite3_stmt *statement, int64_t key) {
    // Keys are spread, as hashed or textual ones are.
    sqlite3_bind_int64(statement, 1, (int64_t)((uint64_t)key * 0x9E3779B97F4A7C15 >> 1));
}
static double inCheckpoints;
static void checkpoint(Store *store) {
    double start = now();
    sqlite3_reset(store->keeper);
    run(store->guardian, "BEGIN IMMEDIATE");
    check(sqlite3_wal_checkpoint_v2(store->writer, 0, SQLITE_CHECKPOINT_PASSIVE, 0, 0), store->writer);
    run(store->guardian, "ROLLBACK");
    store->logPages = 0;
    inCheckpoints += now() - start;
}
static void set(Store *store, int64_t key, int size, int isNew) {
    Name fresh = {{0}}, old = store->files[key];
    sqlite3_bind_null(store->set, 4), sqlite3_bind_null(store->set, 5), sqlite3_bind_null(store->set, 6);
    // Other bytes each time: SQLite does not write pages again that stay as they are.
    payload = noise + randomNumber() % LARGEST;
    if (store->way == BLOB) {
        sqlite3_bind_blob(store->set, 4, payload, size, SQLITE_STATIC);
    } else {
        fresh = writeBeside(store, size);
        sqlite3_bind_text(store->set, 5, fresh.name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(store->set, 6, (int64_t)checksum(payload, size));
    }
    if (!isNew) {
        // The old file's name is asked of the row, as a store must.
        bindKey(store->old, key);
        if (sqlite3_step(store->old) != SQLITE_ROW) check(SQLITE_ERROR, store->writer);
        sqlite3_reset(store->old);
    }
    bindKey(store->set, key);
    sqlite3_bind_int64(store->set, 2, size);
    sqlite3_bind_int64(store->set, 3, (int64_t)(randomNumber() >> 1));
    if (sqlite3_step(store->set) != SQLITE_DONE) check(SQLITE_ERROR, store->writer);
    sqlite3_reset(store->set);
    if (store->way != BLOB && !isNew) giveUp(store, old, size);
    store->files[key] = fresh;
    if (store->logPages >= 1000) checkpoint(store);
}
static void get(Store *store, int64_t key, int size) {
    bindKey(store->get, key);
    if (sqlite3_step(store->get) != SQLITE_ROW) check(SQLITE_ERROR, store->reader);
    if (store->way == BLOB) {
        memcpy(copy, sqlite3_column_blob(store->get, 0), (size_t)sqlite3_column_bytes(store->get, 0));
    } else {
        char where[96];
        snprintf(where, sizeof where, "%s/%s", store->folder, (const char *)sqlite3_column_text(store->get, 1));
        int file = open(where, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        struct stat status;
        if (file < 0 || fstat(file, &status) != 0 || status.st_size != size) fail(where);
        if (read(file, copy, (size_t)size) != size) fail("read");
        close(file);
        if ((int64_t)checksum(copy, size) != sqlite3_column_int64(store->get, 2)) fail("checksum");
    }
    sqlite3_reset(store->get);
}
static double work(Store *store, int which, int size, int count) {
    if (which == GET) { sqlite3_reset(store->keeper); sqlite3_step(store->keeper); }
    double start = now();
    for (int i = 0; i < count; i++) switch (which) {
        case SET_NEW: set(store, store->rows++, size, 1); break;
        case REPLACE: set(store, (int64_t)(randomNumber() % (uint64_t)store->rows), size, 0); break;
        default: get(store, (int64_t)(randomNumber() % (uint64_t)store->rows), size);
    }
    double spent = (now() - start) / count;
    sqlite3_reset(store->keeper);
    return spent;
}
static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
// What it costs to bring files that were just written to the disk: one by one, then all at once.
static void measureSync(void) {
    enum { FILES = 200, SIZE = 64 << 10 };
    char where[64];
    for (int atOnce = 0; atOnce < 2; atOnce++) {
        mkdir("sync", 0700);
        sync();
        for (int i = 0; i < FILES; i++) {
            snprintf(where, sizeof where, "sync/%d", i);
            writeFile(where, SIZE, O_CREAT | O_EXCL);
        }
        double start = now();
        int folder = open("sync", O_RDONLY | O_DIRECTORY);
        for (int i = 0; i < FILES && !atOnce; i++) {
            snprintf(where, sizeof where, "sync/%d", i);
            int file = open(where, O_RDONLY);
            if (fsync(file) != 0) fail("fsync");
            close(file);
        }
        if (atOnce ? syncfs(folder) : fsync(folder)) fail("sync");
        close(folder);
        printf("syncing %d files of 64 KB, each: %.1f us with %s\n", FILES, (now() - start) / FILES,
               atOnce ? "syncfs" : "fsync");
        if (system("rm -rf sync") != 0) fail("rm");
    }
}
static double spent[SIZES][LINES][WAYS][ROUNDS];
static void measure(Store stores[WAYS], int s, int which, int round, int size, int count) {
    for (int w = 0; w < WAYS; w++) {
        inCheckpoints = 0;
        double all = spent[s][which][w][round] = work(&stores[w], which, size, count);
        if (which != GET) spent[s][WORKS + which][w][round] = all - inCheckpoints / count;
    }
}
int main(void) {
    for (size_t i = 0; i < sizeof noise; i++) noise[i] = (char)randomNumber();
    static Store stores[SIZES][WAYS];
    int counts[SIZES];
    // First everything that only makes files: where ext4 has no journal, it looks at each inode that was deleted in the
    // last five minutes before it makes a new one. For the same reason a second run has to wait for so long.
    for (int s = 0; s < SIZES; s++) {
        int size = sizes[s] << 10, count = (8 << 20) / size;
        counts[s] = count = count > 400 ? 400 : count < 16 ? 16 : count;
        for (int w = 0; w < WAYS; w++) openStore(&stores[s][w], w, sizes[s], count * (ROUNDS + 1));
        for (int w = 0; w < WAYS; w++) work(&stores[s][w], SET_NEW, size, count);
        for (int round = 0; round < ROUNDS; round++) measure(stores[s], s, SET_NEW, round, size, count);
    }
    sync();
    printf("%-23s %8s", "us", "size");
    for (int w = 0; w < WAYS; w++) printf(" %21s", wayNames[w]);
    printf("\n");
    for (int s = 0; s < SIZES; s++) {
        int size = sizes[s] << 10;
        for (int w = 0; w < WAYS; w++) work(&stores[s][w], REPLACE, size, counts[s] / 4);
        for (int round = 0; round < ROUNDS; round++) {
            measure(stores[s], s, REPLACE, round, size, counts[s]);
            measure(stores[s], s, GET, round, size, counts[s]);
        }
        for (int which = 0; which < LINES; which++) {
            printf("%-23s %5d KB", lineNames[which], sizes[s]);
            for (int w = 0; w < WAYS; w++) {
                qsort(spent[s][which][w], ROUNDS, sizeof(double), ascending);
                printf(" %21.1f", spent[s][which][w][ROUNDS / 2]);
            }
            printf("\n");
        }
        fflush(stdout);
    }
    for (int s = 0; s < SIZES; s++)
        for (int w = 0; w < WAYS; w++) closeStore(&stores[s][w]);
    measureSync();
    return 0;
}
