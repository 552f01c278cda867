/* bfloat16 with AVX-512: packing, and products in register blocks.
 *
 * One instruction multiplies 16 pairs and adds them to 16 sums: twice the
 * arithmetic of float32's. Blocks of 12 x 2 vectors of sums, as there: for 24
 * instructions they load two vectors and repeat 12 pairs, so a processor that loads
 * half as often as it multiplies has time to spare, and no sum waits for itself where
 * two instructions of latency 6 start in each cycle (it takes 12).
 */

/* Floats to ask for into the second cache, from memory or distant caches: one stream,
 * and each of two. */
#define AHEAD 2048
#define AHEAD_EACH 1024

/* Numbers i, i + 1, ... of two vectors in turn. */
#define INTERLEAVE(i)                                                              \
  _mm512_set_epi16(                                                                \
      i + 47, i + 15, i + 46, i + 14, i + 45, i + 13, i + 44, i + 12, i + 43, i + 11, \
      i + 42, i + 10, i + 41, i + 9, i + 40, i + 8, i + 39, i + 7, i + 38, i + 6,     \
      i + 37, i + 5, i + 36, i + 4, i + 35, i + 3, i + 34, i + 2, i + 33, i + 1,      \
      i + 32, i)

/* (low, high) interleaved */
INLINE __m512i pair_bf16(__m512 low, __m512 high) {
  const __m512i interleave = _mm512_set_epi16(
      31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
      21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(interleave,
                                  (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

/* 32 numbers rounded: a cache line */
INLINE __m512i round_line(__m512 low, __m512 high) {
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* 16 numbers of a row, or the `left` ones that it still has, and zeros */
INLINE __m512 load_left(const float *from, int64_t left) {
  return _mm512_maskz_loadu_ps(left < LINE ? (__mmask16)((1 << left) - 1) : 0xffff, from);
}

static void pack_rows_avx512(const float *from, int64_t stride, int64_t rows,
                             int64_t columns, bf16 *to, int64_t to_stride) {
  for (int64_t r = 0; r < rows; r++) {
    const float *at = from + r * stride;
    bf16 *line = to + r * to_stride;
    for (int64_t c = 0; c < columns; c += PANEL) {
      __m512 low = load_left(at + c, columns - c), high = _mm512_setzero_ps();
      __builtin_prefetch(at + c + AHEAD, 0, 2);
      __builtin_prefetch(at + c + LINE + AHEAD, 0, 2);
      if (c + LINE < columns) high = load_left(at + c + LINE, columns - c - LINE);
      _mm512_storeu_si512(line + c, round_line(low, high));
    }
  }
}

static void pack_pairs_avx512(const float *from, int64_t stride, int64_t rows,
                              int64_t columns, bf16 *to, int64_t panel) {
  for (int64_t r = 0; r < (rows + PANEL - 1) / PANEL * PANEL; r += 2)
    for (int64_t c = 0; c < columns; c += 16) {
      __m512 low = _mm512_setzero_ps(), high = low;
      if (r < rows) low = load_left(from + r * stride + c, columns - c);
      if (r + 1 < rows) high = load_left(from + (r + 1) * stride + c, columns - c);
      _mm512_storeu_si512(to + pair_place(r, c, panel), pair_bf16(low, high));
    }
}

/* Panel by panel: row by row the panels of a matrix would meet in the same places of
 * the nearest cache. */
static void pack_scaled_avx512(const float *from, int64_t rows, int64_t columns,
                               const float *factor, bf16 *left,
                               int64_t left_stride, bf16 *right, int64_t panel) {
  const __m512i first = INTERLEAVE(0), second = INTERLEAVE(16);
  for (int64_t c = 0; c < columns; c += PANEL) {
    int wide = c + LINE < columns;
    const float *at = from + c * rows, *after = at + LINE * rows;
    __m512 by = _mm512_loadu_ps(factor + c), by_after = _mm512_setzero_ps();
    if (wide) by_after = _mm512_loadu_ps(factor + c + LINE);
    for (int64_t r = 0; r < (rows + PANEL - 1) / PANEL * PANEL; r += 2) {
      __m512i line[2];
      UNROLL for (int i = 0; i < 2; i++) {
        line[i] = _mm512_setzero_si512();
        if (r + i >= rows) continue;
        __m512 low = _mm512_loadu_ps(at + (r + i) * LINE) * by, high = by_after;
        __builtin_prefetch(at + (r + i) * LINE + AHEAD_EACH, 0, 2);
        if (wide) {
          high *= _mm512_loadu_ps(after + (r + i) * LINE);
          __builtin_prefetch(after + (r + i) * LINE + AHEAD_EACH, 0, 2);
        }
        line[i] = round_line(low, high);
        _mm512_storeu_si512(left + (r + i) * left_stride + c, line[i]);
      }
      if (right == NULL) continue;
      bf16 *to = right + pair_place(r, c, panel);
      _mm512_storeu_si512(to, _mm512_permutex2var_epi16(line[0], first, line[1]));
      _mm512_storeu_si512(to + PANEL,
                          _mm512_permutex2var_epi16(line[0], second, line[1]));
    }
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
        if (at < rows) low = load_left(from + at * stride + c, columns - c);
        if (at + 1 < rows) high = load_left(from + (at + 1) * stride + c, columns - c);
        v[i] = (vec_avx512)pair_bf16(low, high);
      }
      exchange_avx512(v);
      UNROLL for (int i = 0; i < 16; i++) {
        _mm512_storeu_ps(to + (c + i) * to_stride + r, v[i]);
      }
    }
}

#define EACH_SUM                          \
  UNROLL for (int r = 0; r < rows; r++)   \
    UNROLL for (int v = 0; v < vectors; v++)

/* The arguments of a product, and what becomes of its sums. When they are stored, the
 * block asks for the memory of the next one; when C is scaled, for the numbers `ahead`,
 * which are the rows that the next tile packs and updates. */
typedef struct {
  const bf16 *A, *B;
  int64_t A_stride, panel, depth;
  float *C;
  int64_t C_stride, C_panel, ahead;
  const float *keep;
  volatile float rate; /* volatile: no register holds it while sums need all */
  enum { STORED, ADDED, SCALED } sums;
} Product;

/* A pointer that the compiler knows nothing about, or it computes the addresses of all
 * rows beforehand and keeps them in memory. */
#define OPAQUE(pointer) __asm__("" : "+r"(pointer))
#define LOAD_PAIRS(from) ((__m512bh)_mm512_loadu_si512(from))

/* Clang would take vbroadcastss, with which 12 sums of one vector are 25% slower on
 * Zen 4, and clang 16 would crash. */
INLINE __m512bh repeat_pair(const bf16 *from) {
  int32_t pair;
  memcpy(&pair, from, 4);
#ifdef __clang__
  __m512i pairs;
  __asm__("vpbroadcastd %1, %0" : "=v"(pairs) : "m"(*(const char(*)[4])from));
  return (__m512bh)pairs;
#else
  return (__m512bh)_mm512_set1_epi32(pair);
#endif
}

/* `count` blocks of so many rows and vectors, one below the other, from row r0 and
 * column c0 on. */
INLINE void blocks_bf16(const int rows, const int vectors, const Product *p, int64_t r0,
                        int64_t c0, int64_t count) {
  const int64_t A_stride = p->A_stride, thrice = 3 * A_stride, next = p->panel;
  const bf16 *A = p->A + r0 * A_stride, *B = p->B + c0 / PANEL * next;
  float *C = p->C + r0 * p->C_stride + c0 / LINE * p->C_panel;
  for (; count > 0; count--, A += rows * A_stride, C += rows * p->C_stride) {
    const int64_t C_stride = p->C_stride, C_panel = p->C_panel;
    const bf16 *left[3] = {A, A + 4 * A_stride, A + 8 * A_stride}, *right = B;
    __m512 sum[12][3];
    EACH_SUM { sum[r][v] = _mm512_setzero_ps(); }
    for (int64_t d = p->depth; d > 0; d -= 2) {
      UNROLL for (int i = 0; i < 3; i++) { OPAQUE(left[i]); }
      OPAQUE(right);
      const __m512bh x = LOAD_PAIRS(right),
                     y = vectors > 1 ? LOAD_PAIRS(right + 32) : x,
                     z = vectors > 2 ? LOAD_PAIRS(right + next) : x;
      UNROLL for (int r = 0; r < rows; r++) {
        const __m512bh e =
            repeat_pair(left[r / 4] + (r % 4 == 3 ? thrice : r % 4 * A_stride));
        sum[r][0] = _mm512_dpbf16_ps(sum[r][0], e, x);
        if (vectors > 1) sum[r][1] = _mm512_dpbf16_ps(sum[r][1], e, y);
        if (vectors > 2) sum[r][2] = _mm512_dpbf16_ps(sum[r][2], e, z);
      }
      UNROLL for (int i = 0; i < 3; i++) { left[i] += 2; }
      right += 2 * PANEL;
    }
    if (p->sums == STORED) {
      EACH_SUM {
        float *at = C + r * C_stride + v * C_panel;
        __builtin_prefetch(at + rows * C_stride, 1, 2);
        _mm512_storeu_ps(at, sum[r][v]);
      }
    } else if (p->sums == ADDED) {
      EACH_SUM {
        float *at = C + r * C_stride + v * C_panel;
        _mm512_storeu_ps(at, _mm512_loadu_ps(at) + sum[r][v]);
      }
    } else {
      __m512 rate = _mm512_set1_ps(p->rate);
      EACH_SUM {
        float *at = C + r * C_stride + v * C_panel;
        __m512 old = _mm512_loadu_ps(at) * _mm512_loadu_ps(p->keep + c0 + v * LINE);
        __builtin_prefetch(at + p->ahead, 1, 2);
        _mm512_storeu_ps(at, old + rate * sum[r][v]);
      }
    }
  }
}

/* Functions of their own, because in a large one GCC keeps addresses in the registers
 * that sums need. */
#define BLOCKS(R, N)                                                                    \
  static __attribute__((noinline)) void blocks_##R##x##N(const Product *p, int64_t r,   \
                                                         int64_t c, int64_t count) {    \
    blocks_bf16(R, N, p, r, c, count);                                                  \
  }
#define EACH_ROWS(f, N) \
  f(1, N) f(2, N) f(3, N) f(4, N) f(5, N) f(6, N) f(7, N) f(8, N)
#define MORE_ROWS(f, N) f(9, N) f(10, N) f(11, N) f(12, N)
EACH_ROWS(BLOCKS, 1)
MORE_ROWS(BLOCKS, 1)
EACH_ROWS(BLOCKS, 2)
MORE_ROWS(BLOCKS, 2)
EACH_ROWS(BLOCKS, 3)
#define NAME(R, N) [N][R] = blocks_##R##x##N,
static void (*const blocks_of[4][13])(const Product *, int64_t, int64_t, int64_t) = {
    EACH_ROWS(NAME, 1) MORE_ROWS(NAME, 1) EACH_ROWS(NAME, 2) MORE_ROWS(NAME, 2)
    EACH_ROWS(NAME, 3)};

/* Two vectors of columns at a time, three of the last if their number is odd. */
static void product_avx512(const bf16 *A, int64_t A_stride, const bf16 *B,
                           int64_t panel, int64_t rows, int64_t columns,
                           int64_t depth, float *C, int64_t C_stride,
                           int64_t C_panel, const float *keep, float rate) {
  Product product = {A, B, A_stride, panel, depth, C, C_stride, C_panel,
                     rows * C_stride, keep, rate, keep == NULL ? STORED : SCALED};
  int64_t ones = 0;
  if (keep != NULL && rate == 1)
    while (ones < columns && keep[ones] == 1) ones++;
  if (ones > 0 && ones == columns) product.sums = ADDED; /* the same bits */
  for (int64_t c = 0, vectors; c < columns; c += vectors * LINE) {
    int64_t left = (columns - c) / LINE;
    vectors = left == 1 || left == 3 ? left : 2;
    /* Whole blocks; of what is left, between one and two are halved, because few sums
     * would wait for each other. */
    int64_t most = vectors == 3 ? 8 : 12, whole = rows / most, rest = rows % most;
    if (rest > 0 && whole > 0) whole -= 1, rest += most;
    int64_t upper = rest > most ? (rest + 1) / 2 : rest, r = whole * most;
    if (whole > 0) blocks_of[vectors][most](&product, 0, c, whole);
    if (upper > 0) blocks_of[vectors][upper](&product, r, c, 1);
    if (rest > upper) blocks_of[vectors][rest - upper](&product, r + upper, c, 1);
  }
}

static const Bfloat16 bfloat16_avx512 = {
    pack_rows_avx512, pack_columns_avx512, pack_pairs_avx512, pack_scaled_avx512,
    product_avx512};

#undef AHEAD
#undef AHEAD_EACH
#undef INTERLEAVE
#undef EACH_SUM
#undef OPAQUE
#undef LOAD_PAIRS
#undef BLOCKS
#undef EACH_ROWS
#undef MORE_ROWS
#undef NAME
