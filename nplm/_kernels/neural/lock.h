/* For threads that train on different examples and share the parameters: a spin
 * lock around an update, and an atomic sum. */
#ifndef NPLM_LOCK_H
#define NPLM_LOCK_H

#include <sched.h>

typedef struct {
  int taken;
} Lock;

/* NULL means no lock. */
static inline void lock_acquire(Lock *lock) {
  if (lock == NULL) return;
  long spins = 0;
  while (__atomic_exchange_n(&lock->taken, 1, __ATOMIC_ACQUIRE)) {
    /* Wait by reading, which leaves the cache line to its holder. */
    while (__atomic_load_n(&lock->taken, __ATOMIC_RELAXED)) {
      if (++spins > 2000) sched_yield();
    }
  }
}

static inline void lock_release(Lock *lock) {
  if (lock != NULL) __atomic_store_n(&lock->taken, 0, __ATOMIC_RELEASE);
}

static inline double atomic_read(const double *from) {
  double value;
  __atomic_load(from, &value, __ATOMIC_RELAXED);
  return value;
}

static inline void atomic_add(double *to, double amount) {
  double old = atomic_read(to), sum;
  do {
    sum = old + amount;
  } while (!__atomic_compare_exchange(to, &old, &sum, 1, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED));
}

#endif
