/* Energies (section 5.1). */

/* 1 / d, for d from 1 to 2^125; within 3e-7 of it */
INLINE VEC TIER(reciprocal)(VEC d) {
#ifdef RECIPROCAL
  VEC r = RECIPROCAL(d);
  return r * (2 - d * r); /* a step of Newton's doubles the bits that are right */
#else
  return 1 / d;
#endif
}

/* values = exp(-2 values). With q of s the tanh of s is 2 / (1 + q) - 1, and q of a
 * sum is the product of the q: a sum costs a reciprocal where a tanh costs an
 * exponential. Beyond +-21 (double: 350) a term counts as that, lest q overflow. */
static void TIER(tanh_factors)(void *values_, int64_t n) {
  REAL *values = values_;
  for (int64_t i = 0; i < n; i += WIDTH) {
    VEC v = LOAD(values + i);
#ifdef REAL_IS_FLOAT
    VEC x = (VEC)((IVEC)v | INT32_MIN) * 2.0f; /* -2 |v| */
    VEC e = TIER(exp_negative)(TIER(max)(SPLAT(-42.0f), x));
    IVEC mask = v < SPLAT(0);
    v = (VEC)(((IVEC)(1.0f / e) & mask) | ((IVEC)e & ~mask));
#else
    for (int lane = 0; lane < WIDTH; lane++) {
      REAL s = v[lane] > 350 ? 350 : v[lane];
      v[lane] = exp(-2 * (s < -350 ? -350 : s));
    }
#endif
    STORE(values + i, v);
  }
}

/* Of some words: logits[r, k] = bias[r] + sum_i w[r, i] / (1 + z[k, i] G[r, i]).
 * G and logits are in panels of `rows`, all words here. */
INLINE void TIER(some_energies)(const int words, const REAL *G, const REAL *w,
                                int64_t w_stride, const REAL *bias, int64_t lanes,
                                const REAL *z, int64_t K, REAL *logits,
                                int64_t rows) {
  for (int64_t k = 0; k < K; k++) {
    VEC sum[4];
    UNROLL for (int r = 0; r < words; r++) sum[r] = (VEC){};
    for (int64_t i = 0; i < lanes; i += WIDTH) {
      VEC q = LOAD(z + k * lanes + i);
      UNROLL for (int r = 0; r < words; r++) {
        VEC p = TIER(reciprocal)(q * LOAD(G + PLACE(i, rows) + r * LINE) + 1);
        sum[r] += LOAD(w + r * w_stride + i) * p;
      }
    }
    UNROLL for (int r = 0; r < words; r++) {
      logits[PLACE(k, rows) + r * LINE] = bias[r] + TIER(total)(sum[r]);
    }
  }
}

/* The rows of w lie `w_stride` apart: 0 is one for all words. */
static void TIER(energies)(const void *G_, const void *w_, int64_t w_stride,
                           const void *bias_, int64_t rows, int64_t lanes,
                           const void *z_, int64_t K, void *logits_) {
  const REAL *G = G_, *w = w_, *bias = bias_, *z = z_;
  REAL *logits = logits_;
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4)
    TIER(some_energies)(4, G + r * LINE, w + r * w_stride, w_stride, bias + r,
                        lanes, z, K, logits + r * LINE, rows);
  for (; r < rows; r++)
    TIER(some_energies)(1, G + r * LINE, w + r * w_stride, w_stride, bias + r,
                        lanes, z, K, logits + r * LINE, rows);
}

/* From the gradients g of these logits to those of the sums s = z + G, through
 * a = 2 p - 1, p = 1 / (1 + q): dp/ds = 2 (p - p^2), w = -2 v.
 *   dz[k] += of s;  dG[r] = the sum over k;  dv[r] -= g a;  sums[r] = the sum of g */
INLINE void TIER(some_energy_slopes)(const int words, const REAL *G, const REAL *w,
                                     int64_t w_stride, int64_t lanes, const REAL *z,
                                     const REAL *g, int64_t K, int64_t rows,
                                     REAL *dz, REAL *dG, REAL *dv, REAL *sums) {
  UNROLL for (int r = 0; r < words; r++) {
    sums[r] = 0;
    for (int64_t k = 0; k < K; k++) sums[r] += g[PLACE(k, rows) + r * LINE];
  }
  for (int64_t i = 0; i < lanes; i += WIDTH) {
    VEC G_[4], twice_w[4], down[4], along[4];
    UNROLL for (int r = 0; r < words; r++) {
      G_[r] = LOAD(G + PLACE(i, rows) + r * LINE);
      twice_w[r] = LOAD(w + r * w_stride + i) * 2;
      down[r] = along[r] = (VEC){};
    }
    for (int64_t k = 0; k < K; k++) {
      VEC q = LOAD(z + k * lanes + i), up = LOAD(dz + k * lanes + i);
      UNROLL for (int r = 0; r < words; r++) {
        VEC p = TIER(reciprocal)(q * G_[r] + 1);
        VEC slope = p * SPLAT(g[PLACE(k, rows) + r * LINE]);
        along[r] += slope;
        slope -= slope * p;
        down[r] += slope;
        up += slope * twice_w[r];
      }
      STORE(dz + k * lanes + i, up);
    }
    UNROLL for (int r = 0; r < words; r++) {
      REAL *at = dv + r * w_stride + i;
      STORE(at, LOAD(at) + (sums[r] - along[r] * 2));
      STORE(dG + r * lanes + i, down[r] * twice_w[r]);
    }
  }
}

static void TIER(energy_slopes)(const void *G_, const void *w_, int64_t w_stride,
                                int64_t rows, int64_t lanes, const void *z_,
                                const void *g_, int64_t K, void *dz, void *dG_,
                                void *dv_, void *sums_) {
  const REAL *G = G_, *w = w_, *z = z_, *g = g_;
  REAL *dG = dG_, *dv = dv_, *sums = sums_;
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4)
    TIER(some_energy_slopes)(4, G + r * LINE, w + r * w_stride, w_stride, lanes, z,
                             g + r * LINE, K, rows, dz, dG + r * lanes,
                             dv + r * w_stride, sums + r);
  for (; r < rows; r++)
    TIER(some_energy_slopes)(1, G + r * LINE, w + r * w_stride, w_stride, lanes, z,
                             g + r * LINE, K, rows, dz, dG + r * lanes,
                             dv + r * w_stride, sums + r);
}
