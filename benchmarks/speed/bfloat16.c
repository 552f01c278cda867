/* The parts of a mini-batch's output units in bfloat16, each timed by itself.
 *
 * bfloat16.py compiles this with the kernels' headers and calls it.
 */
#include <stdlib.h>
#include <time.h>

#include "bfloat16.h"

enum { LOGITS, GRADIENT, UPDATE, PACK_ROWS, PACK_SLOPES, PACK_COLUMNS, EXPONENTIALS,
       PARTS };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

static void *zeros(int64_t bytes) {
  void *memory = aligned_alloc(64, round_up(bytes, 64) + 65536); /* read ahead of */
  if (memory) memset(memory, 0, round_up(bytes, 64) + 65536);
  return memory;
}

/* Best seconds of each part, over all tiles of words; 0 if the processor lacks the tier
 * or memory is short. A backward pass follows a forward pass over all words, as in
 * training, because what is in the caches decides the time that packing takes. */
int mini_batch(const char *tier, int64_t n_words, int64_t n_outputs, int64_t K,
               int64_t tile, int64_t repeats, double *best) {
  const Bfloat16 *by = find_bfloat16(tier);
  const Loops *loops = find_loops("avx512", 0);
  if (by == NULL || loops == NULL) return 0;
  int64_t stride = round_up(n_outputs, LINE), R = round_up(tile, PANEL);
  int64_t D = round_up(stride, PANEL), N = round_up(K, PANEL);
  float *E = zeros(4 * n_words * stride), *p = zeros(4 * n_words * K);
  float *dz = zeros(4 * stride * K), *rows = zeros(4 * (3 * N + stride));
  bf16 *left_E = zeros(2 * R * D), *left_g = zeros(2 * R * N);
  bf16 *right_zt = zeros(2 * D * N), *right_g = zeros(2 * R * N);
  bf16 *right_z = zeros(2 * N * D);
  void *all[] = {E, p, dz, rows, left_E, left_g, right_zt, right_g, right_z};
  int whole = 1;
  for (int i = 0; i < 9; i++) whole &= all[i] != NULL;
  for (int part = 0; part < PARTS; part++) best[part] = 1e9;
  float *ones = rows, *factor = rows + N, *total = rows + 2 * N, *keep = rows + 3 * N;
  if (whole) {
    for (int64_t k = 0; k < N; k++) ones[k] = 1, factor[k] = -0.001f;
    for (int64_t i = 0; i < stride; i++) keep[i] = 0.9999f;
    for (int64_t i = 0; i < n_words * stride; i++)
      E[i] = (float)(i * 7919 % 1021 - 510) / 5100;
    for (int64_t i = 0; i < D * N; i++)
      right_zt[i] = right_z[i] = round_bf16((float)(i * 31 % 61 - 30) / 30);
  }
  for (int64_t repeat = 0; whole && repeat < repeats; repeat++) {
    double spent[PARTS] = {0}, t;
#define TIME(part, call) t = now(), call, spent[part] += now() - t
    for (int64_t first = 0; first < n_words; first += tile) {
      int64_t n = n_words - first < tile ? n_words - first : tile;
      float *e = E + first * stride, *y = p + first * K;
      TIME(PACK_ROWS, by->pack_rows(e, stride, n, stride, left_E, D));
      TIME(LOGITS, by->product(left_E, D, right_zt, D * PANEL, n, K, n_outputs, y, LINE,
                               n * LINE, NULL, 0));
      TIME(EXPONENTIALS, loops->exp_columns(y, n, n, K, dz, total));
    }
    memset(dz, 0, 4 * stride * K);
    for (int64_t first = 0; first < n_words; first += tile) {
      int64_t n = n_words - first < tile ? n_words - first : tile;
      float *e = E + first * stride, *y = p + first * K;
      TIME(PACK_SLOPES,
           by->pack_scaled(y, n, K, factor, left_g, N, right_g, R * PANEL));
      TIME(PACK_COLUMNS, by->pack_columns(e, stride, n, stride, left_E, R));
      TIME(GRADIENT, by->product(left_E, R, right_g, R * PANEL, n_outputs - 1, K, n, dz,
                                 K, LINE, ones, 1));
      TIME(UPDATE, by->product(left_g, N, right_z, N * PANEL, n, stride, K, e, stride,
                               LINE, keep, 1e-4f));
    }
    for (int part = 0; part < PARTS; part++)
      best[part] = spent[part] < best[part] ? spent[part] : best[part];
  }
  for (int i = 0; i < 9; i++) free(all[i]);
  return whole;
}
