// LMDB: a transaction for each set, one reading transaction that is renewed for each get.
//
// Where a set has to survive only the process, nothing is synced (MDB_NOSYNC); unlike with SQLite's log, a loss of power
// may then take more than the last moments.
#include "peer.h"

#include <lmdb.h>
#include <string.h>

static MDB_env *environment;
static MDB_dbi database;
static MDB_txn *filling, *reading;

void peer_open(const char *folder, bool survives_power_loss) {
    peer_check(mdb_env_create(&environment) == 0, "mdb_env_create");
    peer_check(mdb_env_set_mapsize(environment, (size_t)1 << 30) == 0, "mdb_env_set_mapsize");
    unsigned flags = survives_power_loss ? 0 : MDB_NOSYNC;
    peer_check(mdb_env_open(environment, folder, flags, 0600) == 0, "mdb_env_open");
    MDB_txn *transaction;
    peer_check(mdb_txn_begin(environment, NULL, 0, &transaction) == 0, "mdb_txn_begin");
    peer_check(mdb_dbi_open(transaction, NULL, MDB_CREATE | MDB_INTEGERKEY, &database) == 0, "mdb_dbi_open");
    peer_check(mdb_txn_commit(transaction) == 0, "mdb_txn_commit");
}

void peer_begin_fill(void) { peer_check(mdb_txn_begin(environment, NULL, 0, &filling) == 0, "mdb_txn_begin"); }

void peer_end_fill(void) {
    peer_check(mdb_txn_commit(filling) == 0, "mdb_txn_commit");
    filling = NULL;
    peer_check(mdb_txn_begin(environment, NULL, MDB_RDONLY, &reading) == 0, "mdb_txn_begin");
    mdb_txn_reset(reading);
}

void peer_set(uint64_t key, const char *value) {
    MDB_val name = {sizeof key, &key}, data = {value_size, (void *)value};
    MDB_txn *transaction = filling;
    if (!filling) peer_check(mdb_txn_begin(environment, NULL, 0, &transaction) == 0, "mdb_txn_begin");
    peer_check(mdb_put(transaction, database, &name, &data, 0) == 0, "mdb_put");
    if (!filling) peer_check(mdb_txn_commit(transaction) == 0, "mdb_txn_commit");
}

bool peer_get(uint64_t key, char *value) {
    MDB_val name = {sizeof key, &key}, data;
    peer_check(mdb_txn_renew(reading) == 0, "mdb_txn_renew");
    int status = mdb_get(reading, database, &name, &data);
    if (status == 0) memcpy(value, data.mv_data, value_size);
    mdb_txn_reset(reading);
    peer_check(status == 0 || status == MDB_NOTFOUND, "mdb_get");
    return status == 0;
}

void peer_close(void) {
    mdb_txn_abort(reading);
    mdb_env_close(environment);
}
