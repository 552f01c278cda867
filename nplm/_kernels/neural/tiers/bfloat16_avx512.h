/* bfloat16 with AVX-512: packing, and products in register blocks.
 *
 * One instruction multiplies 16 pairs and adds them to 16 sums: twice the
 * arithmetic of float32's. Blocks of 12 x 2 vectors, as there.
 */

#define AHEAD 1024 /* floats to prefetch, from memory or distant caches */

/* (low, high) interleaved */
INLINE __m512i pair_bf16(__m512 low, __m512 high) {
  const __m512i interleave = _mm512_set_epi16(
      31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
      21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(interleave,
                                  (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

static void pack_rows_avx512(const float *from, int64_t stride, int64_t rows,
                             int64_t columns, bf16 *to, int64_t to_stride) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c += 16) {
      const float *at = from + r * stride + c;
      __builtin_prefetch(at + AHEAD);
      _mm256_storeu_si256((__m256i *)(to + r * to_stride + c),
                          (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(at)));
    }
}

static void pack_pairs_avx512(const float *from, int64_t stride, int64_t rows,
                              int64_t columns, bf16 *to, int64_t panel) {
  for (int64_t r = 0; r < (rows + PANEL - 1) / PANEL * PANEL; r += 2)
    for (int64_t c = 0; c < columns; c += 16) {
      __m512 low = _mm512_setzero_ps(), high = low;
      if (r < rows) low = _mm512_loadu_ps(from + r * stride + c);
      if (r + 1 < rows) high = _mm512_loadu_ps(from + (r + 1) * stride + c);
      _mm512_storeu_si512(to + pair_place(r, c, panel), pair_bf16(low, high));
    }
}

static void pack_scaled_avx512(const float *from, int64_t rows, int64_t columns,
                               const float *factor, bf16 *left,
                               int64_t left_stride, bf16 *right, int64_t panel) {
  for (int64_t r = 0; r < (rows + PANEL - 1) / PANEL * PANEL; r += 2)
    for (int64_t c = 0; c < columns; c += 16) {
      __m512 low = _mm512_setzero_ps(), high = low;
      __m512 scale = _mm512_loadu_ps(factor + c);
      bf16 *at = left + r * left_stride + c;
      __builtin_prefetch(from + c * rows + r * LINE + AHEAD);
      __builtin_prefetch(from + c * rows + (r + 1) * LINE + AHEAD);
      if (r < rows) {
        low = _mm512_loadu_ps(from + c * rows + r * LINE) * scale;
        _mm256_storeu_si256((__m256i *)at, (__m256i)_mm512_cvtneps_pbh(low));
      }
      if (r + 1 < rows) {
        high = _mm512_loadu_ps(from + c * rows + (r + 1) * LINE) * scale;
        _mm256_storeu_si256((__m256i *)(at + left_stride),
                            (__m256i)_mm512_cvtneps_pbh(high));
      }
      _mm512_storeu_si512(right + pair_place(r, c, panel), pair_bf16(low, high));
    }
}

static void pack_columns_avx512(const float *from, int64_t stride, int64_t rows,
                                int64_t columns, bf16 *to, int64_t to_stride) {
  for (int64_t r = 0; r < rows; r += 32)
    for (int64_t c = 0; c < columns; c += 16) {
      vec_avx512 v[16]; /* of 16 pairs */
      UNROLL for (int i = 0; i < 16; i++) {
        int64_t at = r + 2 * i;
        __m512 low = _mm512_setzero_ps(), high = low;
        __builtin_prefetch(from + (at + 32) * stride + c);
        __builtin_prefetch(from + (at + 33) * stride + c);
        if (at < rows) low = _mm512_loadu_ps(from + at * stride + c);
        if (at + 1 < rows) high = _mm512_loadu_ps(from + (at + 1) * stride + c);
        v[i] = (vec_avx512)pair_bf16(low, high);
      }
      exchange_avx512(v);
      UNROLL for (int i = 0; i < 16; i++) {
        _mm512_storeu_ps(to + (c + i) * to_stride + r, v[i]);
      }
    }
}

INLINE void block_bf16(const int rows, const int vectors, const bf16 *A,
                       int64_t A_stride, const bf16 *B, int64_t depth, float *C,
                       int64_t C_stride, int64_t C_panel, const float *keep,
                       float rate) {
  __m512 sum[12][2];
  UNROLL for (int r = 0; r < rows; r++) {
    UNROLL for (int v = 0; v < vectors; v++) {
      sum[r][v] = _mm512_setzero_ps();
    }
  }
  for (int64_t d = 0; d < depth; d += 2) {
    __m512bh x[2];
    UNROLL for (int v = 0; v < vectors; v++) {
      x[v] = (__m512bh)_mm512_loadu_si512(B + d * PANEL + v * 32);
    }
    UNROLL for (int r = 0; r < rows; r++) {
      int32_t pair;
      memcpy(&pair, A + r * A_stride + d, 4);
      __m512i pairs = _mm512_set1_epi32(pair);
#ifdef __clang__
      __asm__("" : "+v"(pairs)); /* clang 16 crashes without it */
#endif
      __m512bh e = (__m512bh)pairs;
      UNROLL for (int v = 0; v < vectors; v++) {
        sum[r][v] = _mm512_dpbf16_ps(sum[r][v], e, x[v]);
      }
    }
  }
  UNROLL for (int r = 0; r < rows; r++) {
    UNROLL for (int v = 0; v < vectors; v++) {
      float *at = C + r * C_stride + v * C_panel;
      __m512 value = sum[r][v];
      if (keep != NULL)
        value = _mm512_loadu_ps(at) * _mm512_loadu_ps(keep + v * 16) + rate * value;
      _mm512_storeu_ps(at, value);
    }
  }
}

static void product_avx512(const bf16 *A, int64_t A_stride, const bf16 *B,
                           int64_t panel, int64_t rows, int64_t columns,
                           int64_t depth, float *C, int64_t C_stride,
                           int64_t C_panel, const float *keep, float rate) {
#define CALL(R, N)                                                             \
  block_bf16(R, N, A + r * A_stride, A_stride, B + c / PANEL * panel, depth,   \
             C + r * C_stride + c / LINE * C_panel, C_stride, C_panel,            \
             keep == NULL ? NULL : keep + c, rate)
  for (int64_t c = 0; c < columns; c += PANEL) {
    int64_t r = 0;
    if (c + PANEL <= columns) {
      for (; r + 12 <= rows; r += 12) CALL(12, 2);
      for (; r + 4 <= rows; r += 4) CALL(4, 2);
      for (; r < rows; r++) CALL(1, 2);
    } else {
      for (; r + 12 <= rows; r += 12) CALL(12, 1);
      for (; r + 4 <= rows; r += 4) CALL(4, 1);
      for (; r < rows; r++) CALL(1, 1);
    }
  }
#undef CALL
}

static const Bfloat16 bfloat16_avx512 = {
    pack_rows_avx512, pack_columns_avx512, pack_pairs_avx512, pack_scaled_avx512,
    product_avx512};

#undef AHEAD
