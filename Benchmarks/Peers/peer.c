#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static uint64_t seed = 41;

static uint64_t next_random(void) {
    uint64_t bits = seed += 0x9E3779B97F4A7C15u;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
}

void peer_check(bool is_good, const char *what) {
    if (is_good) return;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static void set(uint64_t key, uint64_t edition) {
    char value[value_size];
    memset(value, 7, sizeof value);
    memcpy(value, &edition, sizeof edition);
    peer_set(key, value);
}

static void get(uint64_t key, bool is_there) {
    char value[value_size];
    peer_check(peer_get(key, value) == is_there, "looking up");
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int count, char **arguments) {
    peer_check(count == 6, "reading the arguments");
    const char *operation = arguments[1], *folder = arguments[3];
    uint64_t entries = strtoull(arguments[4], NULL, 10), operations = strtoull(arguments[5], NULL, 10);
    peer_check(mkdir(folder, 0700) == 0, "making the folder");
    peer_open(folder, strcmp(arguments[2], "power") == 0);
    peer_begin_fill();
    for (uint64_t key = 0; key < entries; key++) set(key, key);
    peer_end_fill();
    for (int index = 0; index < 200; index++) get(next_random() % entries, true);
    double start = now();
    for (uint64_t index = 0; index < operations; index++) {
        if (strcmp(operation, "set") == 0) set(entries + index, index);
        else if (strcmp(operation, "replace") == 0) set(next_random() % entries, ~index);
        else if (strcmp(operation, "get") == 0) get(next_random() % entries, true);
        else get(entries + next_random() % entries, false);
    }
    printf("%.1f\n", (now() - start) / (double)operations);
    peer_close();
}
