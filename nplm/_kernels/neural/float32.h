/* The float32 loops for each instruction set, and the choice among them. */
#ifndef NPLM_FLOAT32_H
#define NPLM_FLOAT32_H

#include <float.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Bytes of a matrix that a processor's last cache is likely to hold. */
#define LARGEST_IN_CACHE (1 << 25)

/* Vectors never cross a function that is not inlined: no ABI to warn about. */
#pragma GCC diagnostic ignored "-Wpsabi"

typedef struct {
  void (*forward_tile)(const float *E, int64_t rows, int64_t stride,
                       int64_t n_outputs, const float *zt, int64_t columns,
                       float *logits);
  void (*backward_tile)(const float *E, int64_t rows, int64_t stride,
                        int64_t n_outputs, const float *g, int64_t columns,
                        float *dzt);
  void (*update_tile)(float *E, int64_t rows, int64_t stride, const float *g,
                      int64_t columns, int64_t depth, const float *z, float rate,
                      const float *keep);
  void (*exp_columns)(float *logits, int64_t rows, int64_t columns,
                      float *maximum, float *total);
  void (*scale_columns)(float *values, int64_t rows, int64_t columns,
                        const float *factor);
  double (*exp_row)(float *values, int64_t n, float *maximum);
  void (*tanh)(float *values, int64_t n);
  void (*row_dots)(const float *E, int64_t rows, int64_t stride, const float *z,
                   float *logits);
  void (*row_updates)(float *E, int64_t rows, int64_t stride, const float *z,
                      const float *g, float rate, const float *keep, float *dz);
  void (*transpose)(const float *from, int64_t stride, int64_t rows,
                    int64_t columns, float *to, int64_t to_stride);
  void (*exp_differences)(const float *high, const double *maximum, int64_t columns,
                          float *factor);
} Loops;

#define TIER(name) name##_plain
#define WIDTH 4
#define ROWS 4
#define ABREAST 4
#include "tier.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define NPLM_X86_TIERS

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define TIER(name) name##_avx2
#define WIDTH 8
#define LANES_FROM_0 {0, 1, 2, 3, 4, 5, 6, 7}
#define ROWS 6
#define ABREAST 4
#include "tier.h"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
#define TIER(name) name##_avx512
#define WIDTH 16
#define LANES_FROM_0 {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
#define ROWS 12
#define ABREAST 8
#include "tier.h"
#pragma GCC pop_options
#endif

/* The loops of a tier by name, NULL where this processor lacks it. */
static const Loops *find_loops(const char *tier) {
  if (strcmp(tier, "plain") == 0) return &loops_plain;
#ifdef NPLM_X86_TIERS
  __builtin_cpu_init();
  if (strcmp(tier, "avx2") == 0 && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("fma"))
    return &loops_avx2;
  if (strcmp(tier, "avx512") == 0 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return &loops_avx512;
#endif
  return NULL;
}

#endif
