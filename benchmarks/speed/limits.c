/* What this processor can do at most: multiplications, and bytes moved.
 *
 * common/limits.py compiles this for the processor it runs on and calls it.
 */
#include <stdint.h>
#include <string.h>
#if defined(__AVX512BF16__) || defined(__AMX_BF16__)
#include <immintrin.h>
#endif
#ifdef __AMX_BF16__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
typedef float vector __attribute__((vector_size(4 * LANES)));

/* Sums that do not wait for each other: more than two units with latency 5 use. */
#define CHAINS 12

/* Multiplications and additions of a call. */
double float32_operations(int64_t rounds) {
  volatile float used;
  vector sum[CHAINS], factor = (vector){} + 0.999f, term = (vector){} + 1e-3f;
  for (int i = 0; i < CHAINS; i++) sum[i] = (vector){} + (float)i;
  for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++) sum[i] = sum[i] * factor + term;
  for (int i = 0; i < CHAINS; i++) used = sum[i][0];
  (void)used;
  return 2.0 * CHAINS * LANES * rounds;
}

/* 0 where the processor has no instruction for it. */
double bfloat16_operations(int64_t rounds) {
#if defined(__AMX_BF16__)
  static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
  } shape = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64},
             {16, 16, 16, 16, 16, 16, 16, 16}};
  if (syscall(SYS_arch_prctl, 0x1023, 18)) return 0;
  _tile_loadconfig(&shape);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t r = 0; r < rounds; r++) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return 2.0 * 4 * 16 * 16 * 32 * rounds;
#elif defined(__AVX512BF16__)
  /* Its latency is 6 on Zen 4: two units would need all of 12 sums, and no delay. */
  enum { SUMS = 2 * CHAINS };
  volatile float used;
  __m512 sum[SUMS];
  __m512bh one = (__m512bh)_mm512_set1_epi16(0x3c00);
#pragma GCC unroll 24
  for (int i = 0; i < SUMS; i++) sum[i] = _mm512_set1_ps(i);
  for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 24
    for (int i = 0; i < SUMS; i++) sum[i] = _mm512_dpbf16_ps(sum[i], one, one);
#pragma GCC unroll 24
  for (int i = 0; i < SUMS; i++) used = sum[i][0];
  (void)used;
  return 2.0 * SUMS * 32 * rounds;
#else
  return 0 * rounds;
#endif
}

/* One stream, as fast as it comes. */
float read_all(const float *values, int64_t n) {
  vector sum[8];
  memset(sum, 0, sizeof sum);
  for (int64_t i = 0; i + 8 * LANES <= n; i += 8 * LANES)
#pragma GCC unroll 8
    for (int v = 0; v < 8; v++) sum[v] += *(const vector *)(values + i + v * LANES);
  for (int v = 1; v < 8; v++) sum[0] += sum[v];
  return sum[0][0];
}

void change_all(float *values, int64_t n) {
  vector factor = (vector){} + 0.9999f;
  for (int64_t i = 0; i + 8 * LANES <= n; i += 8 * LANES)
#pragma GCC unroll 8
    for (int v = 0; v < 8; v++) *(vector *)(values + i + v * LANES) *= factor;
}
