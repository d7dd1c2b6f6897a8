// Counts the calls of malloc, calloc and realloc in the whole process, libraries included.
//
// It works where the C library is glibc: this program's own functions take the place of its, and call them. While nobody
// counts that costs one branch for each call, of subject and yardstick alike.
#ifndef BENCH_ALLOCATIONS_H
#define BENCH_ALLOCATIONS_H

#include <stdbool.h>

/// Whether calls can be counted here.
bool bench_can_count_allocations(void);

/// Counts from 0 on.
void bench_start_counting(void);

/// Stops, and tells how many there were since.
long bench_stop_counting(void);

#endif
