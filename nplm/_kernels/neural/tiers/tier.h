/* The network's inner loops, written once for every vector width and both types.
 *
 * tiers.h includes this file once per instruction set and type, with
 *   TIER(name)   the function's name in this instruction set and type
 *   REAL, INT    float and int32_t, or double and int64_t
 *   WIDTH        numbers in a vector
 *   LANES(f, x)  f(0, x), f(1, x), ... for the numbers of a vector
 *   ROWS         rows of a register block: ROWS x 2 accumulators, the two
 *                vectors that meet them and a broadcast fill the registers
 *   ABREAST      rows updated at once when there is one example
 *
 * All matrices are row-major. Rows of E and columns of examples are padded to a
 * multiple of 16 numbers, so that no loop over vectors has a remainder. Every
 * loop over accumulators is unrolled by hand of the compiler, their
 * initialisation too: otherwise they live in memory, at a tenth of the speed.
 *
 * Here are the vectors and what all loops do with them; the loops are in tier/, a
 * subject a file.
 */

typedef REAL TIER(vec) __attribute__((vector_size(sizeof(REAL) * WIDTH)));
typedef INT TIER(ivec) __attribute__((vector_size(sizeof(REAL) * WIDTH)));
typedef REAL TIER(uvec) __attribute__((vector_size(sizeof(REAL) * WIDTH),
                                       aligned(sizeof(REAL)), may_alias));
#define VEC TIER(vec)
#define IVEC TIER(ivec)
#define LOAD(p) ((VEC) * (const TIER(uvec) *)(p))
#define STORE(p, v) (*(TIER(uvec) *)(p) = (TIER(uvec))(v))
#define SPLAT(x) ((REAL)(x) - (VEC){})

/* Load `count` numbers, padded with zeros to a vector. */
INLINE VEC TIER(load_some)(const REAL *from, int64_t count) {
  if (count >= WIDTH) return LOAD(from);
  VEC v = (VEC){};
  memcpy(&v, from, count * sizeof(REAL));
  return v;
}

INLINE void TIER(store_some)(REAL *to, VEC v, int64_t count) {
  if (count >= WIDTH)
    STORE(to, v);
  else
    memcpy(to, &v, count * sizeof(REAL));
}

INLINE VEC TIER(max)(VEC a, VEC b) {
  IVEC mask = a > b;
  return (VEC)(((IVEC)a & mask) | ((IVEC)b & ~mask));
}

INLINE REAL TIER(total)(VEC v) {
#ifdef REAL_IS_FLOAT
  typedef float quad __attribute__((vector_size(16)));
  union {
    VEC v;
    quad q[WIDTH / 4];
  } parts = {v};
  quad sum = parts.q[0];
  for (int i = 1; i < WIDTH / 4; i++) sum += parts.q[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
#else
  REAL sum = v[0];
  for (int lane = 1; lane < WIDTH; lane++) sum += v[lane];
  return sum;
#endif
}

#ifdef REAL_IS_FLOAT
/* exp(x) for x <= 0, where every softmax and tanh needs it. x = n ln 2 + r with
 * |r| <= ln 2 / 2, a polynomial for exp(r) (of least relative error, 1e-7, with 1 + r
 * as it begins), and n added to the exponent's bits. Where 1.5 * 2^23 is added, a
 * float's last bits are a whole number. Relative error below 3e-7; below exp(-87) the
 * result stays at exp(-87). */
INLINE VEC TIER(exp_negative)(VEC x) {
  x = TIER(max)(SPLAT(-87.0f), x); /* this order preserves NaN */
  VEC n = x * 1.44269504f + 12582912.0f;
  VEC fn = n - 12582912.0f;
  VEC r = x - fn * 0.693359375f;
  r = r + fn * 2.12194440e-4f;
  VEC p = r * 8.312525e-3f + 4.1890115e-2f;
  p = p * r + 1.6667114e-1f;
  p = p * r + 4.999923e-1f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return (VEC)((IVEC)p + ((IVEC)n << 23));
}
#else
/* Double precision is for checks, not for speed: it uses the C library. */
INLINE VEC TIER(exp_negative)(VEC x) {
  for (int lane = 0; lane < WIDTH; lane++) x[lane] = exp(x[lane]);
  return x;
}
#endif

#include "tier/products.h"
#include "tier/elementwise.h"
#include "tier/gates.h"
#include "tier/transposes.h"
#include "tier/one_example.h"
#include "tier/trees.h"
#include "tier/energies.h"
#include "tier/adam.h"
#include "tier/weighted_sums.h"

static const Loops TIER(loops) = {
    TIER(forward_tile), TIER(backward_tile), TIER(update_tile),
    TIER(exp_columns),  TIER(scale_columns), TIER(exp_row),
    TIER(tanh),         TIER(row_dots),      TIER(row_updates),
    TIER(transpose),    TIER(exp_differences), TIER(adam),
    TIER(adam_pause),
    TIER(into_panels),  TIER(out_of_panels),
    TIER(forward_column), TIER(exp_column),
    TIER(branch_gradients), TIER(descend),
    TIER(add),          TIER(fade),
    TIER(tanh_factors), TIER(energies),      TIER(energy_slopes),
    TIER(combine),      TIER(dots),          TIER(cell),
    TIER(cell_slopes),
    SMALL_LOOPS,
};

#undef VEC
#undef IVEC
#undef LOAD
#undef STORE
#undef SPLAT
#undef EACH_SUM
#undef PLACES
#undef PLACE
#undef ADD_PRODUCT
#undef COVER
#undef COVER_LINE
#undef TIER
#undef WIDTH
#undef ROWS
#undef ABREAST
#undef LANES
#undef RECIPROCAL
#undef TO_UPPER
#undef TO_LOWER
#undef EXCHANGE_HALVES
