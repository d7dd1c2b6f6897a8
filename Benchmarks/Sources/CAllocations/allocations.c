#include "allocations.h"

#include <stdatomic.h>
#include <stdlib.h>

static atomic_long count;
static atomic_bool is_counting;

#ifdef __GLIBC__
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t number, size_t size);
extern void *__libc_realloc(void *block, size_t size);

static inline void note(void) {
    if (__builtin_expect(atomic_load_explicit(&is_counting, memory_order_relaxed), 0))
        atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
}

void *malloc(size_t size) {
    note();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    note();
    return __libc_calloc(number, size);
}

void *realloc(void *block, size_t size) {
    note();
    return __libc_realloc(block, size);
}

bool bench_can_count_allocations(void) { return true; }
#else
bool bench_can_count_allocations(void) { return false; }
#endif

void bench_start_counting(void) {
    atomic_store(&count, 0);
    atomic_store(&is_counting, true);
}

long bench_stop_counting(void) {
    atomic_store(&is_counting, false);
    return atomic_load(&count);
}
