/* A barrier for the threads of one fit, some microseconds apart: they spin, and
 * yield the processor after a while, which another program may need. */
#ifndef NPLM_BARRIER_H
#define NPLM_BARRIER_H

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

/* Return 0 when all threads have arrived, or 1 if the barrier was broken. */
static inline int barrier_wait(Barrier *barrier) {
  if (barrier->size == 1) return 0;
  int round = __atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&barrier->waiting, 1, __ATOMIC_ACQ_REL) == barrier->size) {
    __atomic_store_n(&barrier->waiting, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&barrier->round, round + 1, __ATOMIC_RELEASE);
  } else {
    long spins = 0;
    while (__atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) == round) {
      if (barrier_broken(barrier)) return 1;
      if (++spins > 2000) {
        yield_processor();
      } else {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
      }
    }
  }
  return barrier_broken(barrier);
}

static inline void barrier_break(Barrier *barrier) {
  __atomic_store_n(&barrier->broken, 1, __ATOMIC_RELAXED);
}

#endif
