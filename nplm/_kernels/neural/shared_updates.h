/* For threads that train on different examples and share the parameters: a spin
 * lock around an update, an atomic sum, and claims on rows. */
#ifndef NPLM_SHARED_UPDATES_H
#define NPLM_SHARED_UPDATES_H

#include <math.h>

#include "yield.h"

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
      if (++spins > 2000) yield_processor();
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

/* Whether the caller must bring a row up to date from time *old to `now`, and then call
 * `settle`. Times fall. The stamp is NaN while another thread does it; this waits. */
static inline int claim(double *stamp, double now, double *old) {
  long spins = 0;
  __atomic_load(stamp, old, __ATOMIC_ACQUIRE);
  for (;;) {
    double busy = NAN;
    if (*old <= now) return 0;
    if (isnan(*old)) {
      if (++spins > 2000) yield_processor();
      __atomic_load(stamp, old, __ATOMIC_ACQUIRE);
    } else if (__atomic_compare_exchange(stamp, old, &busy, 0, __ATOMIC_ACQUIRE,
                                         __ATOMIC_ACQUIRE)) {
      return 1;
    }
  }
}

static inline void settle(double *stamp, double now) {
  __atomic_store(stamp, &now, __ATOMIC_RELEASE);
}

/* Lower a stamp to old + by, or to `most` if that is less. Without a lock, another thread
 * may have claimed the row: then it will settle the stamp. */
static inline void lower(double *stamp, double by, double most) {
  double old, made;
  __atomic_load(stamp, &old, __ATOMIC_RELAXED);
  do {
    if (isnan(old)) return;
    made = old + by < most ? old + by : most;
  } while (!__atomic_compare_exchange(stamp, &old, &made, 1, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED));
}

#endif
