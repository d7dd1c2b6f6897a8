// Atomic words and locks for Apple's systems, whose releases before 2024 have no `Synchronization`.
#ifndef LARDER_ATOMICS_H
#define LARDER_ATOMICS_H

#include <stdbool.h>
#include <stdint.h>

// Each is sequentially consistent, which costs a little more than what some callers ask for.
static inline uint64_t larder_atomic_load(const uint64_t *_Nonnull word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }
static inline void larder_atomic_store(uint64_t *_Nonnull word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }
static inline uint64_t larder_atomic_exchange(uint64_t *_Nonnull word, uint64_t value) {
    return __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
}
static inline uint64_t larder_atomic_add(uint64_t *_Nonnull word, uint64_t value) {
    return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
}
static inline bool larder_atomic_compare_exchange(uint64_t *_Nonnull word, uint64_t *_Nonnull expected, uint64_t desired) {
    return __atomic_compare_exchange_n(word, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

#if defined(__APPLE__)
#include <os/lock.h>
#include <stdlib.h>

typedef os_unfair_lock larder_lock;
static inline larder_lock *_Nonnull larder_lock_make(void) {
    larder_lock *lock = (larder_lock *)calloc(1, sizeof(larder_lock));
    if (lock == 0) abort();
    return lock;
}
static inline void larder_lock_free(larder_lock *_Nonnull lock) { free(lock); }
static inline void larder_lock_lock(larder_lock *_Nonnull lock) { os_unfair_lock_lock(lock); }
static inline bool larder_lock_try(larder_lock *_Nonnull lock) { return os_unfair_lock_trylock(lock); }
static inline void larder_lock_unlock(larder_lock *_Nonnull lock) { os_unfair_lock_unlock(lock); }
#endif

#endif
