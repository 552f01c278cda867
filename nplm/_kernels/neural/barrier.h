/* A barrier for the threads or processes of one fit, some microseconds apart: they spin,
 * and yield the processor after a while, which another program may need. */
#ifndef NPLM_BARRIER_H
#define NPLM_BARRIER_H

#include <time.h>

#include "yield.h"

typedef struct {
  int size;
  int waiting;
  int round;
  int broken;
} Barrier;

static inline int barrier_broken(const Barrier *barrier) {
  return __atomic_load_n(&barrier->broken, __ATOMIC_RELAXED);
}

/* Arrive, and return the number of the round to wait for the end of. */
static inline int barrier_arrive(Barrier *barrier) {
  int round = __atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&barrier->waiting, 1, __ATOMIC_ACQ_REL) == barrier->size) {
    __atomic_store_n(&barrier->waiting, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&barrier->round, round + 1, __ATOMIC_RELEASE);
  }
  return round;
}

/* Return whether all have arrived, after a second at the latest. */
static inline int barrier_passed(const Barrier *barrier, int round) {
  time_t began = 0;
  for (int spins = 0; __atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) == round;) {
    if (barrier_broken(barrier)) return 0;
    if (++spins > 2000) {
      if (began == 0) began = time(NULL);
      yield_processor(); /* for milliseconds, where others need it */
      if (time(NULL) != began) return 0;
    } else {
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
    }
  }
  return 1;
}

/* Return 0 when all threads have arrived, or 1 if the barrier was broken. A thread alone
 * ends its mini-batch: it may hold the lock of an update. */
static inline int barrier_wait(Barrier *barrier) {
  if (barrier->size == 1) return 0;
  int round = barrier_arrive(barrier);
  while (!barrier_passed(barrier, round)) {
    if (barrier_broken(barrier)) return 1;
  }
  return barrier_broken(barrier);
}

static inline void barrier_break(Barrier *barrier) {
  __atomic_store_n(&barrier->broken, 1, __ATOMIC_RELAXED);
}

#endif
