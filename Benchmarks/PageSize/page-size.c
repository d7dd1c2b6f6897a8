// Measures the store's work on pages of 4, 8 and 16 KB: `make bench-page-size`. Plain SQLite through prepared statements,
// with the tables and the settings of the store. Rounds are interleaved; medians are compared with those of 4 KB.
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SIZES = 4, ROUNDS = 7, SMALL_ROWS = 100000, LARGE_ROWS = 4000, SAMPLE = 4000, LARGE_SAMPLE = 1000 };
// The last one is without auto-vacuum, to show what that costs.
static const int sizes[SIZES] = {4096, 8192, 16384, 4096};
static const char *const names[] = {"set new, 300 B", "replace, 300 B", "get, 300 B, kept-open", "set new, 10 KB",
                                    "replace, 10 KB", "get, 10 KB, kept-open"};
enum { WORKS = sizeof names / sizeof *names };

typedef struct {
    sqlite3 *writer, *reader, *guardian;
    sqlite3_stmt *set, *get, *keeper;
    int pageSize, logPages, hasVacuum;
    int64_t rows[2];
    char path[64];
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
static void check(int code, sqlite3 *db) {
    if (code != SQLITE_OK) { fprintf(stderr, "%s\n", sqlite3_errmsg(db)); exit(1); }
}
static void run(sqlite3 *db, const char *sql) { check(sqlite3_exec(db, sql, 0, 0, 0), db); }
static int countPages(void *store, sqlite3 *db, const char *name, int pages) {
    (void)db, (void)name;
    ((Store *)store)->logPages = pages;
    return SQLITE_OK;
}
static sqlite3 *connect(Store *store) {
    sqlite3 *db;
    check(sqlite3_open(store->path, &db), db);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, 0);
    char pageSize[64];
    snprintf(pageSize, sizeof pageSize, "PRAGMA page_size = %d", store->pageSize);
    run(db, pageSize);
    run(db, store->hasVacuum ? "PRAGMA auto_vacuum = INCREMENTAL" : "PRAGMA auto_vacuum = NONE");
    run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
            "PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 4194304; PRAGMA cache_size = -8192;"
            "PRAGMA mmap_size = 0; PRAGMA secure_delete = OFF");
    return db;
}
static void openStore(Store *store, int pageSize, int hasVacuum) {
    store->pageSize = pageSize;
    store->hasVacuum = hasVacuum;
    snprintf(store->path, sizeof store->path, "page-size-%d-%d.sqlite", pageSize, hasVacuum);
    store->writer = connect(store);
    run(store->writer,
        "CREATE TABLE entry (id INTEGER PRIMARY KEY, cache INTEGER NOT NULL, key ANY NOT NULL, size INTEGER NOT NULL,"
        "written_at INTEGER NOT NULL, accessed_at INTEGER NOT NULL, age_rule INTEGER, age INTEGER,"
        "is_pinned INTEGER NOT NULL DEFAULT 0, revision INTEGER NOT NULL, file TEXT, checksum INTEGER, extended BLOB,"
        "payload BLOB) STRICT; CREATE UNIQUE INDEX entry_key ON entry (cache, key)");
    store->reader = connect(store);
    store->guardian = connect(store);
    sqlite3_wal_hook(store->writer, countPages, store);
    check(sqlite3_prepare_v3(store->writer,
              "INSERT INTO entry (cache, key, size, written_at, accessed_at, revision, payload)"
              "VALUES (?1, ?2, ?3, 1700000000000, 1700000000000, ?4, ?5) ON CONFLICT (cache, key) DO UPDATE SET"
              " size = excluded.size, written_at = excluded.written_at, revision = excluded.revision,"
              " payload = excluded.payload", -1, SQLITE_PREPARE_PERSISTENT, &store->set, 0), store->writer);
    check(sqlite3_prepare_v3(store->reader, "SELECT payload FROM entry WHERE cache = ?1 AND key = ?2", -1,
                             SQLITE_PREPARE_PERSISTENT, &store->get, 0), store->reader);
    check(sqlite3_prepare_v3(store->reader, "SELECT 1 FROM sqlite_schema LIMIT 1", -1, SQLITE_PREPARE_PERSISTENT,
                             &store->keeper, 0), store->reader);
}
static char payload[10240];
static void set(Store *store, int cache, int64_t key, int size) {
    // Keys are spread, as hashed or textual ones are.
    sqlite3_bind_int64(store->set, 1, cache);
    sqlite3_bind_int64(store->set, 2, (int64_t)((uint64_t)key * 0x9E3779B97F4A7C15 >> 1));
    sqlite3_bind_int64(store->set, 3, size);
    sqlite3_bind_int64(store->set, 4, (int64_t)(randomNumber() >> 1));
    sqlite3_bind_blob(store->set, 5, payload, size, SQLITE_STATIC);
    if (sqlite3_step(store->set) != SQLITE_DONE) check(SQLITE_ERROR, store->writer);
    sqlite3_reset(store->set);
    // The same bytes of log for every page size; the copying is part of what a set costs.
    if ((int64_t)store->logPages * store->pageSize < 4 << 20) return;
    sqlite3_reset(store->keeper);
    run(store->guardian, "BEGIN IMMEDIATE");
    check(sqlite3_wal_checkpoint_v2(store->writer, 0, SQLITE_CHECKPOINT_PASSIVE, 0, 0), store->writer);
    run(store->guardian, "ROLLBACK");
    store->logPages = 0;
}
static void get(Store *store, int cache, int64_t key) {
    static char copy[10240];
    sqlite3_bind_int64(store->get, 1, cache);
    sqlite3_bind_int64(store->get, 2, (int64_t)((uint64_t)key * 0x9E3779B97F4A7C15 >> 1));
    if (sqlite3_step(store->get) != SQLITE_ROW) check(SQLITE_ERROR, store->reader);
    memcpy(copy, sqlite3_column_blob(store->get, 0), (size_t)sqlite3_column_bytes(store->get, 0));
    sqlite3_reset(store->get);
}
static double work(Store *store, int which) {
    int large = which >= 3, size = large ? 10240 : 300, count = large ? LARGE_SAMPLE : SAMPLE;
    int64_t *rows = &store->rows[large];
    if (which % 3 == 2) { sqlite3_reset(store->keeper); sqlite3_step(store->keeper); }
    double start = now();
    for (int i = 0; i < count; i++) switch (which % 3) {
        case 0: set(store, large, (*rows)++, size); break;
        case 1: set(store, large, (int64_t)(randomNumber() % (uint64_t)*rows), size); break;
        default: get(store, large, (int64_t)(randomNumber() % (uint64_t)*rows));
    }
    double spent = (now() - start) / count;
    sqlite3_reset(store->keeper);
    return spent;
}
static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
int main(void) {
    for (size_t i = 0; i < sizeof payload; i++) payload[i] = (char)randomNumber();
    Store stores[SIZES] = {0};
    for (int s = 0; s < SIZES; s++) {
        openStore(&stores[s], sizes[s], s < SIZES - 1);
        run(stores[s].writer, "BEGIN");
        for (; stores[s].rows[0] < SMALL_ROWS; stores[s].rows[0]++) set(&stores[s], 0, stores[s].rows[0], 300);
        for (; stores[s].rows[1] < LARGE_ROWS; stores[s].rows[1]++) set(&stores[s], 1, stores[s].rows[1], 10240);
        run(stores[s].writer, "COMMIT");
    }
    static double spent[WORKS][SIZES][ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        fprintf(stderr, "round %d of %d\n", round + 1, ROUNDS);
        for (int w = 0; w < WORKS; w++)
            for (int s = 0; s < SIZES; s++) spent[w][s][round] = work(&stores[s], w);
    }
    printf("%-24s %10s %10s %10s %14s   (4 KB: us; others: ratio to it)\n", "", "4 KB", "8 KB", "16 KB", "4 KB, no vacuum");
    for (int w = 0; w < WORKS; w++) {
        for (int s = 0; s < SIZES; s++) qsort(spent[w][s], ROUNDS, sizeof(double), ascending);
        double base = spent[w][0][ROUNDS / 2];
        printf("%-24s %10.2f %10.2f %10.2f %14.2f\n", names[w], base, spent[w][1][ROUNDS / 2] / base,
               spent[w][2][ROUNDS / 2] / base, spent[w][3][ROUNDS / 2] / base);
    }
    for (int s = 0; s < SIZES; s++) {
        struct stat status;
        stat(stores[s].path, &status);
        printf("file, %2d KB pages%s: %.1f MB\n", sizes[s] / 1024, s < SIZES - 1 ? "" : ", no vacuum",
               (double)status.st_size / 1e6);
    }
    return 0;
}
