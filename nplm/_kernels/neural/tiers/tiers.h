/* The loops of the network for each instruction set, and their selection. */
#ifndef NPLM_TIERS_H
#define NPLM_TIERS_H

#include <float.h>
#include <math.h>

#include "compilers.h"
#include "loops.h"

/* A panel of this depth takes half of the smallest first-level cache, 32 KB. */
#define DEPTH 256
/* Examples whose updates of a weight are added up before it changes. */
#define BREADTH 128

#define LANES_2(f, x) f(0, x), f(1, x)
#define LANES_4(f, x) LANES_2(f, x), f(2, x), f(3, x)
#define LANES_8(f, x) LANES_4(f, x), f(4, x), f(5, x), f(6, x), f(7, x)
#define LANES_16(f, x)                                                       \
  LANES_8(f, x), f(8, x), f(9, x), f(10, x), f(11, x), f(12, x), f(13, x),   \
      f(14, x), f(15, x)

/* Vectors never cross a function that is not inlined: no ABI to warn about. */
#pragma GCC diagnostic ignored "-Wpsabi"

/* ---- float ---- */

#define REAL float
#define INT int32_t
#define REAL_IS_FLOAT
#define REAL_MAX FLT_MAX
#define SQUARE_ROOT sqrtf
#define SMALL(name) name##_float
#include "small.h"
#define SMALL_LOOPS                                                             \
  choose_float, add_targets_float, pack_float, unpack_float, raise_float,       \
      add_scaled_float, share_float, fill_float, scale_float, multiply_float,   \
      mask_float, subtract_float, scatter_float, dot_float, tanh_slopes_float,  \
      rectify_float, rectify_slopes_float, normalize_float, normalize_slopes_float,   \
      outer_float, energy_weights_float

#define TIER(name) name##_plain
#define WIDTH 4
#define LANES LANES_4
#define ROWS 4
#define ABREAST 4
#include "tier.h"

#ifdef __x86_64__
#define NPLM_X86_TIERS

FOR_TARGET("avx2,fma")
#define TIER(name) name##_avx2
#define RECIPROCAL(d) __builtin_ia32_rcpps256(d)
#define WIDTH 8
#define LANES LANES_8
#define ROWS 6
#define ABREAST 4
#include "tier.h"
END_TARGET

FOR_TARGET("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
#define TIER(name) name##_avx512
#define RECIPROCAL(d) __builtin_ia32_rcp14ps512_mask(d, d, 0xffff)
#define WIDTH 16
#define LANES LANES_16
#define ROWS 12
#define ABREAST 8
#include "tier.h"
END_TARGET
#endif

#ifdef __aarch64__
#define NPLM_NEON_TIER /* available on every such processor */
#define TIER(name) name##_neon
#define WIDTH 4
#define LANES LANES_4
#define ROWS 12
#define ABREAST 8
#include "tier.h"
#endif

#undef REAL
#undef INT
#undef REAL_IS_FLOAT
#undef REAL_MAX
#undef SQUARE_ROOT
#undef SMALL_LOOPS

/* ---- double ---- */

#define REAL double
#define INT int64_t
#define REAL_MAX DBL_MAX
#define SQUARE_ROOT sqrt
#define SMALL(name) name##_double
#include "small.h"
#define SMALL_LOOPS                                                                \
  choose_double, add_targets_double, pack_double, unpack_double, raise_double,     \
      add_scaled_double, share_double, fill_double, scale_double, multiply_double, \
      mask_double, subtract_double, scatter_double, dot_double, tanh_slopes_double, \
      rectify_double, rectify_slopes_double, normalize_double, normalize_slopes_double, \
      outer_double, energy_weights_double

#define TIER(name) name##_double_plain
#define WIDTH 2
#define LANES LANES_2
#define ROWS 4
#define ABREAST 4
#include "tier.h"

#ifdef NPLM_X86_TIERS
FOR_TARGET("avx2,fma")
#define TIER(name) name##_double_avx2
#define WIDTH 4
#define LANES LANES_4
#define ROWS 6
#define ABREAST 4
#include "tier.h"
END_TARGET

FOR_TARGET("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
#define TIER(name) name##_double_avx512
#define WIDTH 8
#define LANES LANES_8
#define ROWS 12
#define ABREAST 8
#include "tier.h"
END_TARGET
#endif

#ifdef NPLM_NEON_TIER
#define TIER(name) name##_double_neon
#define WIDTH 2
#define LANES LANES_2
#define ROWS 12
#define ABREAST 8
#include "tier.h"
#endif

#undef REAL
#undef INT
#undef REAL_MAX
#undef SQUARE_ROOT
#undef SMALL_LOOPS

/* Return the loops of a tier by name, or NULL if this processor lacks it. */
static const Loops *find_loops(const char *tier, int is_double) {
  if (strcmp(tier, "plain") == 0)
    return is_double ? &loops_double_plain : &loops_plain;
#ifdef NPLM_X86_TIERS
  __builtin_cpu_init();
  if (strcmp(tier, "avx2") == 0 && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("fma"))
    return is_double ? &loops_double_avx2 : &loops_avx2;
  if (strcmp(tier, "avx512") == 0 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return is_double ? &loops_double_avx512 : &loops_avx512;
#endif
#ifdef NPLM_NEON_TIER
  if (strcmp(tier, "neon") == 0) return is_double ? &loops_double_neon : &loops_neon;
#endif
  return NULL;
}

#endif
