/* Weighted sums of rows that lie anywhere (averages of distant words). */

/* out[j, c] = sum_i weights[j * by + i * step] rows[i][c], for `outs` of j and
 * `vectors` of c, or the last `count` numbers of one. */
INLINE void TIER(combine_block)(const int outs, const int vectors, const void **rows,
                                int64_t n, int64_t c, int64_t count,
                                const REAL *weights, int64_t by, int64_t step,
                                REAL *out, int64_t stride) {
  VEC sum[4][2];
  UNROLL for (int j = 0; j < outs; j++) {
    UNROLL for (int v = 0; v < vectors; v++) sum[j][v] = (VEC){};
  }
  for (int64_t i = 0; i < n; i++) {
    const REAL *row = (const REAL *)rows[i] + c;
    VEC x[2];
    UNROLL for (int v = 0; v < vectors; v++) {
      x[v] = TIER(load_some)(row + v * WIDTH, count);
    }
    UNROLL for (int j = 0; j < outs; j++) {
      VEC weight = SPLAT(weights[j * by + i * step]);
      UNROLL for (int v = 0; v < vectors; v++) sum[j][v] += weight * x[v];
    }
  }
  UNROLL for (int j = 0; j < outs; j++) {
    UNROLL for (int v = 0; v < vectors; v++) {
      TIER(store_some)(out + j * stride + c + v * WIDTH, sum[j][v], count);
    }
  }
}

/* out[j, :] = sum_i weights[j * by + i * step] rows[i], rows of m numbers */
static void TIER(combine)(const void **rows, int64_t n, int64_t m, const void *weights_,
                          int64_t by, int64_t step, int64_t outs, void *out_) {
  for (int64_t j = 0; j < outs;) {
    const REAL *weights = (const REAL *)weights_ + j * by;
    REAL *out = (REAL *)out_ + j * m;
    int64_t some = outs - j < 4 ? 1 : 4;
#define CALL(V, C, COUNT)                                                           \
  do {                                                                              \
    if (some == 4)                                                                  \
      TIER(combine_block)(4, V, rows, n, C, COUNT, weights, by, step, out, m);      \
    else                                                                            \
      TIER(combine_block)(1, V, rows, n, C, COUNT, weights, by, step, out, m);      \
  } while (0)
    int64_t c = 0;
    for (; c + 2 * WIDTH <= m; c += 2 * WIDTH) CALL(2, c, WIDTH);
    for (; c + WIDTH <= m; c += WIDTH) CALL(1, c, WIDTH);
    if (c < m && m > WIDTH)
      CALL(1, m - WIDTH, WIDTH); /* some once more */
    else if (c < m)
      CALL(1, c, m - c);
#undef CALL
    j += some;
  }
}

/* sums[j * n + i] += left[j, :] . rows[i], rows of m numbers, for `outs` of j */
INLINE void TIER(dots_block)(const int outs, const REAL *left, const void **rows,
                             int64_t n, int64_t m, REAL *sums) {
  const int64_t whole = m / WIDTH * WIDTH, rest = m - whole;
  VEC last[4];
  UNROLL for (int j = 0; j < outs; j++) {
    last[j] = TIER(load_some)(left + j * m + whole, rest);
  }
  for (int64_t i = 0; i < n; i++) {
    const REAL *row = rows[i];
    VEC sum[4];
    UNROLL for (int j = 0; j < outs; j++) sum[j] = (VEC){};
    for (int64_t c = 0; c < whole; c += WIDTH) {
      VEC x = LOAD(row + c);
      UNROLL for (int j = 0; j < outs; j++) sum[j] += x * LOAD(left + j * m + c);
    }
    if (rest) {
      VEC x = TIER(load_some)(row + whole, rest);
      UNROLL for (int j = 0; j < outs; j++) sum[j] += x * last[j];
    }
    UNROLL for (int j = 0; j < outs; j++) sums[j * n + i] += TIER(total)(sum[j]);
  }
}

/* sums[j, i] += left[j, :] . rows[i], for `outs` rows of m numbers on the left */
static void TIER(dots)(const void *left, int64_t outs, const void **rows, int64_t n,
                       int64_t m, void *sums) {
  int64_t j = 0;
  for (; j + 4 <= outs; j += 4)
    TIER(dots_block)(4, (const REAL *)left + j * m, rows, n, m, (REAL *)sums + j * n);
  for (; j < outs; j++)
    TIER(dots_block)(1, (const REAL *)left + j * m, rows, n, m, (REAL *)sums + j * n);
}
