/* One example at a time: each output row is read or written once. */

/* logits[r] = sum_d E[r, d] z[d], to the bits of `forward_tile` for a column z: the
 * terms of a row are added up in their order, so rows go side by side. */
static void TIER(forward_column)(const void *E_, int64_t rows, int64_t stride,
                                 int64_t n_outputs, const void *z_,
                                 void *logits_) {
  const REAL *E = E_, *z = z_;
  REAL *logits = logits_;
  REAL corner[WIDTH * WIDTH] = {0}; /* what is left of E, to read it as a whole block */
  for (int64_t r = 0; r < rows; r += WIDTH) {
    const REAL *row = E + r * stride;
    int64_t n_rows = rows - r < WIDTH ? rows - r : WIDTH;
    VEC sum = (VEC){};
    for (int64_t d = 0; d < n_outputs; d += WIDTH) {
      int64_t depth = n_outputs - d < WIDTH ? n_outputs - d : WIDTH;
      const REAL *from = row + d;
      int64_t step = stride;
      if (n_rows < WIDTH || depth < WIDTH) {
        for (int i = 0; i < n_rows; i++)
          memcpy(corner + i * WIDTH, from + i * stride, depth * sizeof(REAL));
        from = corner, step = WIDTH;
      }
      VEC v[WIDTH];
      UNROLL for (int i = 0; i < WIDTH; i++) {
        __builtin_prefetch(row + (WIDTH + i) * stride + d);
        v[i] = LOAD(from + i * step);
      }
      TIER(exchange)(v);
      if (depth == WIDTH) {
        UNROLL for (int i = 0; i < WIDTH; i++) sum += v[i] * SPLAT(z[d + i]);
      } else {
        UNROLL for (int i = 0; i < WIDTH; i++) {
          if (i < depth) sum += v[i] * SPLAT(z[d + i]);
        }
      }
    }
    TIER(store_some)(logits + r, sum, n_rows);
  }
}

/* `exp_columns` for one column, to the bits. */
static void TIER(exp_column)(void *logits_, int64_t rows, void *maximum_,
                             void *total_) {
  REAL *logits = logits_, *maximum = maximum_, *total = total_;
  VEC highs = SPLAT(-REAL_MAX);
  int64_t r = 0;
  for (; r + WIDTH <= rows; r += WIDTH) highs = TIER(max)(highs, LOAD(logits + r));
  REAL high = highs[0], sum = 0;
  for (int lane = 1; lane < WIDTH; lane++)
    high = high > highs[lane] ? high : highs[lane];
  for (; r < rows; r++) high = high > logits[r] ? high : logits[r];
  for (r = 0; r + WIDTH <= rows; r += WIDTH)
    STORE(logits + r, TIER(exp_negative)(LOAD(logits + r) - SPLAT(high)));
  for (; r < rows; r++) {
    VEC e = TIER(exp_negative)(SPLAT(logits[r] - high));
    logits[r] = e[0];
  }
  for (r = 0; r < rows; r++) sum += logits[r];
  *maximum = high;
  *total = sum;
}

/* logits[r] = E[r, :n] . z, fetching rows so far ahead from memory */
static void TIER(row_dots)(const void *E_, int64_t rows, int64_t stride, int64_t n,
                           const void *z_, int64_t rows_ahead, void *logits_) {
  const REAL *E = E_;
  const REAL *z = z_;
  REAL *logits = logits_;
  int64_t ahead = rows_ahead * stride;
  for (int64_t r = 0; r < rows; r++) {
    const REAL *row = E + r * stride;
    VEC sum = (VEC){};
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
      __builtin_prefetch(row + ahead + i);
      sum += LOAD(row + i) * LOAD(z + i);
    }
    logits[r] = TIER(total)(sum);
    for (; i < n; i++) logits[r] += row[i] * z[i];
  }
}

/* Section 3.2, step 2(a), in one pass over the rows:
 *   dz += g[r] E[r, :n];  E[r, :n] = keep * E[r, :n] + rate g[r] z */
static void TIER(row_updates)(void *E_, int64_t rows, int64_t stride, int64_t n,
                              const void *z_, const void *g_, double rate_,
                              const void *keep_, void *dz_) {
  REAL *E = E_;
  const REAL *z = z_;
  const REAL *g = g_;
  REAL rate = (REAL)rate_;
  const REAL *keep = keep_;
  REAL *dz = dz_;
  int64_t r = 0;
  for (; r + ABREAST <= rows; r += ABREAST) {
    REAL *row = E + r * stride;
    VEC slope[ABREAST];
    UNROLL for (int q = 0; q < ABREAST; q++) slope[q] = SPLAT(g[r + q]);
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
      VEC x = LOAD(z + i) * rate, k = LOAD(keep + i), down = LOAD(dz + i);
      UNROLL for (int q = 0; q < ABREAST; q++) {
        REAL *at = row + q * stride + i;
        __builtin_prefetch(at + ABREAST * stride, 1);
        VEC w = LOAD(at);
        down += slope[q] * w;
        STORE(at, k * w + slope[q] * x);
      }
      STORE(dz + i, down);
    }
    for (; i < n; i++)
      for (int q = 0; q < ABREAST; q++) {
        REAL *at = row + q * stride + i;
        dz[i] += g[r + q] * *at;
        *at = keep[i] * *at + rate * g[r + q] * z[i];
      }
  }
  for (; r < rows; r++)
    for (int64_t i = 0; i < n; i++) {
      REAL *at = E + r * stride + i;
      dz[i] += g[r] * *at;
      *at = keep[i] * *at + rate * g[r] * z[i];
    }
}
