// What a peer does, and how it is timed; each peer's file says how it keeps things.
//
//     PEER set|replace|get|miss crash|power FOLDER ENTRIES OPERATIONS
//
// prints nanoseconds for each operation. Keys are 0..<ENTRIES, values 300 bytes.
#ifndef PEER_H
#define PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { value_size = 300 };

/// Opens an empty store in a folder that is there.
void peer_open(const char *folder, bool survives_power_loss);
/// Stands around the filling, which need not be durable.
void peer_begin_fill(void);
void peer_end_fill(void);
/// Returns when the value is as safe as was asked for.
void peer_set(uint64_t key, const char *value);
/// Copies the value, or returns false.
bool peer_get(uint64_t key, char *value);
void peer_close(void);

/// Ends the process with a message if `what` failed.
void peer_check(bool is_good, const char *what);

#endif
