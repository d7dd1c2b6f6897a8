// Atomic words for Apple's systems, whose releases before 2024 have no `Synchronization`.
#ifndef LARDER_ATOMICS_H
#define LARDER_ATOMICS_H

#include <stdbool.h>
#include <stdint.h>

// Each is sequentially consistent: on arm64 that is the cheapest one that a load which acquires can have.
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

#endif
