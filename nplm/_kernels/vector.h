/* The elementwise loops of the network, vectorised by the compiler.
 *
 * Each public function is compiled for several instruction sets and the best
 * one is chosen when the module loads (target_clones), so that one portable
 * build runs at the speed of the processor it meets. Sums are reordered only
 * where a loop says so (omp simd reduction); no unsafe-math flag is needed.
 */
#ifndef NPLM_VECTOR_H
#define NPLM_VECTOR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && \
    !defined(__clang__)
#define CLONES                                                          \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), \
                 optimize("O3")))
#else
#define CLONES
#endif
#define INLINE static inline __attribute__((always_inline))

/* exp(x) for x <= 0, where every softmax and tanh below needs it.
 * x = n ln 2 + r with |r| <= ln 2 / 2, and a polynomial for exp(r); relative
 * error below 2e-7 as long as the result is a normal number. */
INLINE float exp_negative_f32(float x) {
  x = x < -87.0f ? -87.0f : x;
  int32_t n = (int32_t)(x * 1.44269504f - 0.5f);
  float fn = (float)n;
  float r = x - fn * 0.693359375f;
  r = r + fn * 2.12194440e-4f;
  float p = 1.98756915e-4f;
  p = p * r + 1.39819995e-3f;
  p = p * r + 8.33345191e-3f;
  p = p * r + 4.16657959e-2f;
  p = p * r + 1.66666665e-1f;
  p = p * r + 5.00000012e-1f;
  p = p * r * r + r + 1.0f;
  int32_t bits = (n + 127) << 23;
  float power;
  memcpy(&power, &bits, sizeof power);
  return p * power;
}

INLINE double exp_negative_f64(double x) { return exp(x); }

/* rows x cols logits, column by column: maximum[c] = the column's maximum,
 * logits[r, c] = exp(logits[r, c] - maximum[c]), total[c] = the column's sum. */
#define DEFINE_EXP_COLUMNS(REAL, SUFFIX)                                       \
  CLONES static void exp_columns_##SUFFIX(REAL *restrict logits, int64_t rows, \
                                          int64_t cols, REAL *restrict maximum, \
                                          REAL *restrict total) {              \
    for (int64_t c = 0; c < cols; c++) {                                       \
      maximum[c] = logits[c];                                                  \
      total[c] = 0;                                                            \
    }                                                                          \
    for (int64_t r = 1; r < rows; r++) {                                       \
      const REAL *restrict row = logits + r * cols;                            \
      for (int64_t c = 0; c < cols; c++)                                       \
        maximum[c] = row[c] > maximum[c] ? row[c] : maximum[c];                \
    }                                                                          \
    for (int64_t r = 0; r < rows; r++) {                                       \
      REAL *restrict row = logits + r * cols;                                  \
      for (int64_t c = 0; c < cols; c++) {                                     \
        REAL e = exp_negative_##SUFFIX(row[c] - maximum[c]);                   \
        row[c] = e;                                                            \
        total[c] += e;                                                         \
      }                                                                        \
    }                                                                          \
  }
DEFINE_EXP_COLUMNS(float, f32)
DEFINE_EXP_COLUMNS(double, f64)

/* values[i] = exp(values[i] - maximum), for one example; returns their sum. */
#define DEFINE_EXP_ROW(REAL, SUFFIX)                                           \
  CLONES static double exp_row_##SUFFIX(REAL *restrict values, int64_t n,      \
                                        REAL *restrict maximum) {              \
    REAL m = values[0];                                                        \
    _Pragma("omp simd reduction(max : m)")                                     \
    for (int64_t i = 1; i < n; i++) m = values[i] > m ? values[i] : m;         \
    double total = 0;                                                          \
    for (int64_t start = 0; start < n; start += 1024) {                        \
      int64_t stop = start + 1024 < n ? start + 1024 : n;                      \
      REAL part = 0;                                                           \
      _Pragma("omp simd reduction(+ : part)")                                  \
      for (int64_t i = start; i < stop; i++) {                                 \
        REAL e = exp_negative_##SUFFIX(values[i] - m);                         \
        values[i] = e;                                                         \
        part += e;                                                             \
      }                                                                        \
      total += part;                                                           \
    }                                                                          \
    *maximum = m;                                                              \
    return total;                                                              \
  }
DEFINE_EXP_ROW(float, f32)
DEFINE_EXP_ROW(double, f64)

/* values[r, c] *= factor[c] */
#define DEFINE_SCALE_COLUMNS(REAL, SUFFIX)                                     \
  CLONES static void scale_columns_##SUFFIX(REAL *restrict values,             \
                                            int64_t rows, int64_t cols,        \
                                            const REAL *restrict factor) {     \
    for (int64_t r = 0; r < rows; r++) {                                       \
      REAL *restrict row = values + r * cols;                                  \
      for (int64_t c = 0; c < cols; c++) row[c] *= factor[c];                  \
    }                                                                          \
  }
DEFINE_SCALE_COLUMNS(float, f32)
DEFINE_SCALE_COLUMNS(double, f64)

/* values = tanh(values); tanh(v) = sign(v) (1 - e) / (1 + e), e = exp(-2 |v|) */
#define DEFINE_TANH(REAL, SUFFIX, FABS, COPYSIGN)                          \
  CLONES static void tanh_##SUFFIX(REAL *restrict values, int64_t n) {     \
    for (int64_t i = 0; i < n; i++) {                                      \
      REAL e = exp_negative_##SUFFIX(-2 * FABS(values[i]));                \
      values[i] = COPYSIGN((1 - e) / (1 + e), values[i]);                  \
    }                                                                      \
  }
DEFINE_TANH(float, f32, fabsf, copysignf)
DEFINE_TANH(double, f64, fabs, copysign)

/* ---- one example at a time: each output row is read or written once ---- */

/* logits[r] = rows[r] . z */
#define DEFINE_ROW_DOTS(REAL, SUFFIX)                                        \
  CLONES static void row_dots_##SUFFIX(const REAL *restrict rows,            \
                                       int64_t n_rows, int64_t stride,       \
                                       int64_t n, const REAL *restrict z,    \
                                       REAL *restrict logits) {              \
    int64_t r = 0;                                                           \
    for (; r + 4 <= n_rows; r += 4) {                                        \
      const REAL *restrict p = rows + r * stride;                            \
      const REAL *restrict q = p + stride;                                   \
      const REAL *restrict s = q + stride;                                   \
      const REAL *restrict t = s + stride;                                   \
      REAL a = 0, b = 0, c = 0, d = 0;                                       \
      _Pragma("omp simd reduction(+ : a, b, c, d)")                          \
      for (int64_t i = 0; i < n; i++) {                                      \
        a += p[i] * z[i];                                                    \
        b += q[i] * z[i];                                                    \
        c += s[i] * z[i];                                                    \
        d += t[i] * z[i];                                                    \
      }                                                                      \
      logits[r] = a;                                                         \
      logits[r + 1] = b;                                                     \
      logits[r + 2] = c;                                                     \
      logits[r + 3] = d;                                                     \
    }                                                                        \
    for (; r < n_rows; r++) {                                                \
      REAL a = 0;                                                            \
      _Pragma("omp simd reduction(+ : a)")                                   \
      for (int64_t i = 0; i < n; i++) a += rows[r * stride + i] * z[i];      \
      logits[r] = a;                                                         \
    }                                                                        \
  }
DEFINE_ROW_DOTS(float, f32)
DEFINE_ROW_DOTS(double, f64)

/* Section 3.2, step 2(a), over a block of rows [weights | bias]:
 *   dz += g[r] rows[r];  rows[r] = keep rows[r] + rate g[r] z
 * where the last of the n columns, the bias, is not decayed. */
#define DEFINE_ROW_UPDATES(REAL, SUFFIX)                                       \
  CLONES static void row_updates_##SUFFIX(                                     \
      REAL *restrict rows, int64_t n_rows, int64_t stride, int64_t n,          \
      const REAL *restrict z, const REAL *restrict g, REAL rate, REAL keep,    \
      REAL *restrict dz) {                                                     \
    for (int64_t r = 0; r < n_rows; r++) {                                     \
      REAL *restrict row = rows + r * stride;                                  \
      REAL gr = g[r], step = rate * g[r];                                      \
      for (int64_t i = 0; i < n - 1; i++) {                                    \
        REAL w = row[i];                                                       \
        dz[i] += gr * w;                                                       \
        row[i] = keep * w + step * z[i];                                       \
      }                                                                        \
      row[n - 1] += step;                                                      \
    }                                                                          \
  }
DEFINE_ROW_UPDATES(float, f32)
DEFINE_ROW_UPDATES(double, f64)

#endif
