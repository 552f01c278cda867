/* Number by number: exponentials and their sums, tanh, additions. */

/* Column by column of `rows` of a matrix in panels of more: maximum[k];
 * logits[r, k] = exp(logits[r, k] - maximum[k]); total[k] = their sum. */
static void TIER(exp_columns)(void *logits_, int64_t rows, int64_t panel_rows,
                              int64_t columns, void *maximum_, void *total_) {
  enum { VECTORS = LINE / WIDTH, AT_ONCE = VECTORS > 4 ? 4 : VECTORS };
  REAL *maximum = maximum_, *total = total_;
  for (int64_t k = 0; k < columns; k += AT_ONCE * WIDTH) {
    REAL *logits = (REAL *)logits_ + PLACE(k, panel_rows);
    VEC high[AT_ONCE], other[AT_ONCE], sum[AT_ONCE];
    UNROLL for (int v = 0; v < AT_ONCE; v++) {
      high[v] = other[v] = SPLAT(-REAL_MAX); /* so that all -inf is not NaN */
      sum[v] = (VEC){};
    }
    /* Alternate rows, so that no maximum waits for the last. */
    for (int64_t r = 0; r < rows; r += 2) {
      const REAL *at = logits + r * LINE, *next = r + 1 < rows ? at + LINE : at;
      UNROLL for (int v = 0; v < AT_ONCE; v++) {
        high[v] = TIER(max)(high[v], LOAD(at + v * WIDTH));
        other[v] = TIER(max)(other[v], LOAD(next + v * WIDTH));
      }
    }
    UNROLL for (int v = 0; v < AT_ONCE; v++) {
      high[v] = TIER(max)(high[v], other[v]);
    }
    for (int64_t r = 0; r < rows; r++) {
      UNROLL for (int v = 0; v < AT_ONCE; v++) {
        REAL *at = logits + r * LINE + v * WIDTH;
        VEC e = TIER(exp_negative)(LOAD(at) - high[v]);
        STORE(at, e);
        sum[v] += e;
      }
    }
    UNROLL for (int v = 0; v < AT_ONCE; v++) {
      STORE(maximum + k + v * WIDTH, high[v]);
      STORE(total + k + v * WIDTH, sum[v]);
    }
  }
}

/* factor[k] = exp(high[k] - maximum[k]) */
static void TIER(exp_differences)(const void *high_, const double *maximum,
                                  int64_t columns, void *factor_) {
  const REAL *high = high_;
  REAL *factor = factor_;
  for (int64_t k = 0; k < columns; k += WIDTH) {
    REAL least[WIDTH];
    for (int lane = 0; lane < WIDTH; lane++) least[lane] = (REAL)maximum[k + lane];
    STORE(factor + k, TIER(exp_negative)(LOAD(high + k) - LOAD(least)));
  }
}

/* values[r, k] *= factor[k], for `rows` of a matrix in panels of more */
static void TIER(scale_columns)(void *values_, int64_t rows, int64_t panel_rows,
                                int64_t columns, const void *factor_) {
  REAL *values = values_;
  const REAL *factor = factor_;
  for (int64_t k = 0; k < columns; k += WIDTH) {
    VEC by = LOAD(factor + k);
    REAL *at = values + PLACE(k, panel_rows);
    for (int64_t r = 0; r < rows; r++, at += LINE) STORE(at, LOAD(at) * by);
  }
}

/* values[i] = exp(values[i] - maximum); returns their sum. */
static double TIER(exp_row)(void *values_, int64_t n, double *maximum) {
  REAL *values = values_;
  REAL high = values[0];
  int64_t i = 0;
  if (n >= WIDTH) {
    VEC highs = LOAD(values);
    for (; i + WIDTH <= n; i += WIDTH) highs = TIER(max)(highs, LOAD(values + i));
    for (int lane = 0; lane < WIDTH; lane++)
      high = highs[lane] > high ? highs[lane] : high;
  }
  for (; i < n; i++) high = values[i] > high ? values[i] : high;
  double total = 0;
  i = 0;
  while (i + WIDTH <= n) {
    /* Short sums in float32, added up in float64. */
    int64_t stop = i + 64 * WIDTH < n ? i + 64 * WIDTH : n;
    VEC part = (VEC){};
    for (; i + WIDTH <= stop; i += WIDTH) {
      VEC e = TIER(exp_negative)(LOAD(values + i) - high);
      STORE(values + i, e);
      part += e;
    }
    for (int lane = 0; lane < WIDTH; lane++) total += part[lane];
  }
  for (; i < n; i++) {
    VEC e = TIER(exp_negative)(SPLAT(values[i] - high));
    values[i] = e[0];
    total += e[0];
  }
  *maximum = high;
  return total;
}

/* tanh(v) = sign(v) (1 - e) / (1 + e), e = exp(-2 |v|) */
INLINE VEC TIER(tanh_of)(VEC v) {
#ifdef REAL_IS_FLOAT
  IVEC sign = (IVEC)v & INT32_MIN;
  VEC e = TIER(exp_negative)((VEC)((IVEC)v | INT32_MIN) * 2.0f);
  return (VEC)((IVEC)((1.0f - e) / (1.0f + e)) | sign);
#else
  for (int lane = 0; lane < WIDTH; lane++) v[lane] = tanh(v[lane]);
  return v;
#endif
}

/* values = tanh(values) */
static void TIER(tanh)(void *values_, int64_t n) {
  REAL *values = values_;
  for (int64_t i = 0; i < n; i += WIDTH) {
    VEC v = TIER(tanh_of)(TIER(load_some)(values + i, n - i));
    TIER(store_some)(values + i, v, n - i);
  }
}

/* values += rate * more */
static void TIER(add)(void *values_, const void *more_, int64_t n, double rate) {
  REAL *values = values_, by = (REAL)rate;
  const REAL *more = more_;
  int64_t i = 0;
  for (; i + WIDTH <= n; i += WIDTH)
    STORE(values + i, LOAD(values + i) + LOAD(more + i) * by);
  for (; i < n; i++) values[i] += by * more[i];
}

/* values -= share * values, a share so small that 1 - share may be 1 to a float */
static void TIER(fade)(void *values_, int64_t n, double share) {
  REAL *values = values_, by = (REAL)share;
  int64_t i = 0;
  for (; i + WIDTH <= n; i += WIDTH)
    STORE(values + i, LOAD(values + i) - LOAD(values + i) * by);
  for (; i < n; i++) values[i] -= by * values[i];
}
