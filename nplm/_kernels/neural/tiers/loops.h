/* Tables of kernel functions, which tiers.h and bfloat16.h fill. */
#ifndef NPLM_LOOPS_H
#define NPLM_LOOPS_H

#include <stdint.h>
#include <string.h>

/* Columns of a panel: a cache line of float. */
#define LINE 16

/* Adam's step at one time. */
typedef struct {
  double beta_1, beta_2, epsilon, rate;
} Moments;

/* All arrays have the type of the table, float or double. */
typedef struct {
  /* of an instruction set: tier.h */
  void (*forward_tile)(const void *E, int64_t rows, int64_t stride,
                       int64_t n_outputs, const void *zt, int64_t columns,
                       void *logits);
  void (*backward_tile)(const void *E, int64_t rows, int64_t stride,
                        int64_t n_outputs, const void *g, int64_t columns,
                        void *dzt);
  void (*update_tile)(void *E, int64_t rows, int64_t stride, int64_t n_outputs,
                      const void *g, int64_t columns, int64_t depth, const void *z, double rate,
                      const void *keep);
  void (*exp_columns)(void *logits, int64_t rows, int64_t panel_rows,
                      int64_t columns, void *maximum, void *total);
  void (*scale_columns)(void *values, int64_t rows, int64_t panel_rows,
                        int64_t columns, const void *factor);
  double (*exp_row)(void *values, int64_t n, double *maximum);
  void (*tanh)(void *values, int64_t n);
  void (*row_dots)(const void *E, int64_t rows, int64_t stride, int64_t n, const void *z,
                   int64_t rows_ahead, void *logits);
  void (*row_updates)(void *E, int64_t rows, int64_t stride, int64_t n, const void *z,
                      const void *g, double rate, const void *keep, void *dz);
  void (*transpose)(const void *from, int64_t stride, int64_t rows,
                    int64_t columns, void *to, int64_t to_stride);
  void (*exp_differences)(const void *high, const double *maximum, int64_t columns,
                          void *factor);
  void (*adam)(void *values, const void *gradient, void *first, void *second,
               int64_t n, const void *keep, int keep_each, const Moments *by);
  void (*adam_pause)(void *values, void *first, void *second, int64_t n, double share,
                     const Moments *by);
  void (*into_panels)(const void *from, int64_t stride, int64_t rows,
                      int64_t columns, void *to, int64_t to_columns);
  void (*out_of_panels)(const void *from, int64_t rows, int64_t columns, void *to,
                        int64_t to_stride);
  void (*forward_column)(const void *E, int64_t rows, int64_t stride,
                         int64_t n_outputs, const void *z, void *logits);
  void (*exp_column)(void *logits, int64_t rows, void *maximum, void *total);
  void (*branch_gradients)(const void *E, int64_t rows, int64_t stride, const void *g,
                           const void *z, void *gradients, void *dz);
  void (*descend)(const int *branches, const int64_t *starts, int64_t n_nodes,
                  int64_t n_words, const void *logits, int64_t columns, void *log_p);
  void (*add)(void *values, const void *more, int64_t n, double rate);
  void (*fade)(void *values, int64_t n, double share);
  void (*tanh_factors)(void *values, int64_t n);
  void (*energies)(const void *G, const void *w, int64_t w_stride, const void *bias,
                   int64_t rows, int64_t lanes, const void *z, int64_t K,
                   void *logits);
  void (*energy_slopes)(const void *G, const void *w, int64_t w_stride, int64_t rows,
                        int64_t lanes, const void *z, const void *g, int64_t K,
                        void *dz, void *dG, void *dv, void *sums);
  void (*combine)(const void **rows, int64_t n, int64_t m, const void *weights,
                  int64_t by, int64_t step, int64_t outs, void *out);
  void (*dots)(const void *left, int64_t outs, const void **rows, int64_t n, int64_t m,
               void *sums);
  void (*cell)(void *s, const void *more, const void *d, int64_t h, const void *before,
               void *c, void *a);
  void (*cell_slopes)(void *s, const void *before, const void *da, int64_t h, void *dc,
                      void *dd);
  /* of any: small.h */
  void (*choose)(const void *logits, int64_t first, int64_t rows,
                 const int *targets, int64_t K, int64_t columns, double *chosen);
  void (*add_targets)(void *slopes, int64_t first, int64_t rows,
                      const int *targets, int64_t K, int64_t columns);
  void (*pack)(const void *from, int64_t stride, int64_t rows, int64_t columns,
               void *to, int64_t panel_rows);
  void (*unpack)(const void *from, int64_t panel_rows, int64_t rows, int64_t columns,
                 void *to, int64_t stride);
  void (*raise)(const void *high, int64_t n, double *maxima);
  void (*add_scaled)(const void *part, const void *factor, int64_t n,
                     double *totals);
  void (*share)(void *factor, const double *totals, int64_t n, int64_t columns);
  void (*fill)(void *values, int64_t n, int64_t stride, double value);
  void (*scale)(void *values, int64_t n, double factor);
  void (*multiply)(void *values, const void *factors, int64_t n);
  void (*mask)(void *values, int64_t n, uint64_t seed, uint64_t first,
               int64_t threshold, double scale);
  void (*subtract)(void *values, int64_t n, double amount);
  void (*scatter)(const void *values, int64_t n, double more, const int *where,
                void *to);
  double (*dot)(const void *values, const void *others, int64_t n);
  void (*tanh_slopes)(const void *a, void *slopes, int64_t n, int64_t columns,
                      void *sums);
  void (*rectify)(void *values, int64_t n);
  void (*rectify_slopes)(const void *u, void *slopes, int64_t n, int64_t columns,
                         void *sums);
  void (*normalize)(const void *a, int64_t n, int64_t columns, double more, void *to,
                    void *by);
  void (*normalize_slopes)(const void *v, const void *by, const void *dv, int64_t n,
                           int64_t columns, void *da);
  void (*outer)(const void *left, int64_t rows, const void *right, int64_t columns,
                double rate, void *to, int64_t stride);
  void (*energy_weights)(const void *v, int64_t v_stride, const void *b,
                         int64_t b_stride, int64_t rows, int64_t h, void *w,
                         int64_t w_stride, void *bias);
  /* of BLAS: C = alpha op(A) op(B) + beta C (_loops.pyx) */
  void (*product)(int transpose_a, int transpose_b, int64_t m, int64_t n, int64_t k,
                  double alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                  double beta, void *c, int64_t ldc);
} Loops;

/* ---- bfloat16: see bfloat16.h ---- */

#define PANEL 32

typedef uint16_t bf16;

typedef struct {
  /* to[r, c] = from[r, c] */
  void (*pack_rows)(const float *from, int64_t stride, int64_t rows,
                    int64_t columns, bf16 *to, int64_t to_stride);
  /* to[c, r] = from[r, c] */
  void (*pack_columns)(const float *from, int64_t stride, int64_t rows,
                       int64_t columns, bf16 *to, int64_t to_stride);
  /* The panels begin `panel` numbers apart; zeros fill up their depth. */
  void (*pack_pairs)(const float *from, int64_t stride, int64_t rows,
                     int64_t columns, bf16 *to, int64_t panel);
  /* left = right = from * factor[c]; rows, and pairs (unless NULL), of what is in panels */
  void (*pack_scaled)(const float *from, int64_t rows, int64_t columns,
                      const float *factor, bf16 *left, int64_t left_stride,
                      bf16 *right, int64_t panel);
  /* C = A B, or with `keep` C[:, c] = keep[c] C[:, c] + rate A B */
  /* 16 columns of C lie together, the next C_panel further on. */
  void (*product)(const bf16 *A, int64_t A_stride, const bf16 *B, int64_t panel,
                  int64_t rows, int64_t columns, int64_t depth, float *C,
                  int64_t C_stride, int64_t C_panel, const float *keep, float rate);
} Bfloat16;

static inline bf16 round_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if ((bits & 0x7fffffff) > 0x7f800000) return (bf16)(bits >> 16 | 64); /* NaN */
  return (bf16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Index of row r and column c of a right side. */
static inline int64_t pair_place(int64_t r, int64_t c, int64_t panel) {
  return c / PANEL * panel + (r / 2 * PANEL + c % PANEL) * 2 + r % 2;
}

#endif
