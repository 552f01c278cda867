/* Loops over few numbers, for both types: compiled once, for any processor.
 *
 * tiers.h includes this file with SMALL(name), the function's name for a type, and
 * REAL, float or double.
 */

/* Index of (r, c) of a matrix in panels; a single column is not in panels. */
static int64_t SMALL(place)(int64_t r, int64_t c, int64_t rows, int64_t columns) {
  return columns == 1 ? r : c / LINE * rows * LINE + r * LINE + c % LINE;
}

/* chosen[k] = logits[targets[k] - first, k], where that row is here */
static void SMALL(choose)(const void *logits_, int64_t first, int64_t rows,
                          const int *targets, int64_t K, int64_t columns,
                          double *chosen) {
  const REAL *logits = logits_;
  for (int64_t k = 0; k < K; k++) {
    int64_t row = targets[k] - first;
    if (row >= 0 && row < rows)
      chosen[k] = logits[SMALL(place)(row, k, rows, columns)];
  }
}

/* slopes[targets[k] - first, k] += 1, where that row is here */
static void SMALL(add_targets)(void *slopes_, int64_t first, int64_t rows,
                               const int *targets, int64_t K, int64_t columns) {
  REAL *slopes = slopes_;
  for (int64_t k = 0; k < K; k++) {
    int64_t row = targets[k] - first;
    if (row >= 0 && row < rows) slopes[SMALL(place)(row, k, rows, columns)] += 1;
  }
}

/* Copy up to LINE of n columns; a constant number of bytes takes no call. */
static void SMALL(copy_rows)(const REAL *from, int64_t stride, int64_t rows, int64_t n,
                             REAL *to, int64_t to_stride) {
  for (int64_t r = 0; r < rows; r++, from += stride, to += to_stride) {
    if (n >= LINE) memcpy(to, from, LINE * sizeof(REAL));
    else memcpy(to, from, n * sizeof(REAL));
  }
}

/* A row-major matrix into panels of more rows. */
static void SMALL(pack)(const void *from_, int64_t stride, int64_t rows,
                        int64_t columns, void *to_, int64_t panel_rows) {
  const REAL *from = from_;
  REAL *to = to_;
  for (int64_t c = 0; c < columns; c += LINE)
    SMALL(copy_rows)(from + c, stride, rows, columns - c, to + c * panel_rows, LINE);
}

/* The inverse. */
static void SMALL(unpack)(const void *from_, int64_t panel_rows, int64_t rows,
                          int64_t columns, void *to_, int64_t stride) {
  const REAL *from = from_;
  REAL *to = to_;
  for (int64_t c = 0; c < columns; c += LINE)
    SMALL(copy_rows)(from + c * panel_rows, LINE, rows, columns - c, to + c, stride);
}

/* maxima = max(maxima, high) */
static void SMALL(raise)(const void *high_, int64_t n, double *maxima) {
  const REAL *high = high_;
  for (int64_t k = 0; k < n; k++)
    maxima[k] = maxima[k] < high[k] ? high[k] : maxima[k];
}

/* totals += part * factor */
static void SMALL(add_scaled)(const void *part_, const void *factor_, int64_t n,
                              double *totals) {
  const REAL *part = part_, *factor = factor_;
  for (int64_t k = 0; k < n; k++) totals[k] += part[k] * (double)factor[k];
}

/* factor = -factor / totals; 0 in the padding columns */
static void SMALL(share)(void *factor_, const double *totals, int64_t n,
                         int64_t columns) {
  REAL *factor = factor_;
  for (int64_t k = 0; k < n; k++) factor[k] = (REAL)(-factor[k] / totals[k]);
  for (int64_t k = n; k < columns; k++) factor[k] = 0;
}

/* values[i * stride] = value */
static void SMALL(fill)(void *values_, int64_t n, int64_t stride, double value) {
  REAL *values = values_;
  for (int64_t i = 0; i < n; i++) values[i * stride] = (REAL)value;
}

/* values *= factor */
static void SMALL(scale)(void *values_, int64_t n, double factor) {
  REAL *values = values_, by = (REAL)factor;
  for (int64_t i = 0; i < n; i++) values[i] *= by;
}

/* values *= factors */
static void SMALL(multiply)(void *values_, const void *factors_, int64_t n) {
  REAL *restrict values = values_;
  const REAL *restrict factors = factors_;
  for (int64_t i = 0; i < n; i++) values[i] *= factors[i];
}

/* values[i] = 0, or `scale` where the i-th of numbers below 65,536 is `threshold` or
 * more: four of each of splitmix64's (Steele, Lea and Flood, 2014), begun with `seed`,
 * of which `first` came before. n is a multiple of 4. Numbers are drawn in one loop
 * and compared in another, of whole vectors. */
static void SMALL(mask)(void *values_, int64_t n, uint64_t seed, uint64_t first,
                        int64_t threshold, double scale) {
  REAL *values = values_, kept = (REAL)scale;
  uint16_t numbers[64];
  for (int64_t i = 0; i < n; i += 64) {
    int some = n - i < 64 ? (int)(n - i) : 64;
    for (int j = 0; j < some; j += 4) {
      uint64_t z = seed + (first + (uint64_t)(i + j) / 4 + 1) * 0x9e3779b97f4a7c15;
      z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
      z = (z ^ z >> 27) * 0x94d049bb133111eb;
      z ^= z >> 31;
      for (int part = 0; part < 4; part++)
        numbers[j + part] = (uint16_t)(z >> 16 * part);
    }
    for (int j = 0; j < some; j++)
      values[i + j] = numbers[j] >= (int)threshold ? kept : 0;
  }
}

/* values -= amount */
static void SMALL(subtract)(void *values_, int64_t n, double amount) {
  REAL *values = values_, less = (REAL)amount;
  for (int64_t i = 0; i < n; i++) values[i] -= less;
}

/* to[where[i]] = values[i] + more */
static void SMALL(scatter)(const void *values_, int64_t n, double more_, const int *where,
                         void *to_) {
  const REAL *values = values_;
  REAL *to = to_, more = (REAL)more_;
  for (int64_t i = 0; i < n; i++) to[where[i]] = values[i] + more;
}

/* values . others */
static double SMALL(dot)(const void *values_, const void *others_, int64_t n) {
  const REAL *values = values_, *others = others_;
  REAL sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += values[i] * others[i];
  return sum;
}

/* Through tanh: slopes = (1 - a^2) slopes, (n, columns), and sums of its columns */
static void SMALL(tanh_slopes)(const void *a_, void *slopes_, int64_t n,
                               int64_t columns, void *sums_) {
  const REAL *a = a_;
  REAL *slopes = slopes_, *sums = sums_;
  for (int64_t j = 0; j < columns; j++) sums[j] = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < columns; j++) {
      REAL act = a[i * columns + j];
      slopes[i * columns + j] *= 1 - act * act;
      sums[j] += slopes[i * columns + j];
    }
}

/* values = max(values, 0), and NaN stays */
static void SMALL(rectify)(void *values_, int64_t n) {
  REAL *values = values_;
  for (int64_t i = 0; i < n; i++) values[i] = values[i] < 0 ? 0 : values[i];
}

/* Through max(u, 0): slopes = (u > 0) slopes, (n, columns), and sums of its columns */
static void SMALL(rectify_slopes)(const void *u_, void *slopes_, int64_t n,
                                  int64_t columns, void *sums_) {
  const REAL *restrict u = u_;
  REAL *restrict slopes = slopes_, *restrict sums = sums_;
  for (int64_t j = 0; j < columns; j++) sums[j] = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < columns; j++) {
      REAL slope = u[i * columns + j] > 0 ? slopes[i * columns + j] : 0;
      slopes[i * columns + j] = slope;
      sums[j] += slope;
    }
}

/* to = (a - mean) * by, of each row of a (n, columns), by = 1 / sqrt(variance + more) */
static void SMALL(normalize)(const void *a_, int64_t n, int64_t columns, double more,
                             void *to_, void *by_) {
  REAL *by = by_;
  for (int64_t i = 0; i < n; i++) {
    const REAL *restrict a = (const REAL *)a_ + i * columns;
    REAL *restrict to = (REAL *)to_ + i * columns;
    REAL sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < columns; j++) sum += a[j];
    REAL mean = sum / (REAL)columns;
#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < columns; j++) {
      to[j] = a[j] - mean;
      squares += to[j] * to[j];
    }
    by[i] = 1 / SQUARE_ROOT(squares / (REAL)columns + (REAL)more);
    for (int64_t j = 0; j < columns; j++) to[j] *= by[i];
  }
}

/* Through `normalize`, of which v and by are the results: da += by (dv - the mean of dv
 * - v times the mean of v dv) */
static void SMALL(normalize_slopes)(const void *v_, const void *by_, const void *dv_,
                                    int64_t n, int64_t columns, void *da_) {
  const REAL *by = by_;
  for (int64_t i = 0; i < n; i++) {
    const REAL *restrict v = (const REAL *)v_ + i * columns;
    const REAL *restrict dv = (const REAL *)dv_ + i * columns;
    REAL *restrict da = (REAL *)da_ + i * columns;
    REAL sum = 0, along = 0;
#pragma omp simd reduction(+ : sum, along)
    for (int64_t j = 0; j < columns; j++) {
      sum += dv[j];
      along += dv[j] * v[j];
    }
    sum /= (REAL)columns, along /= (REAL)columns;
    for (int64_t j = 0; j < columns; j++) da[j] += by[i] * (dv[j] - sum - v[j] * along);
  }
}

/* to = outer(left, right), its rows `stride` apart */
static void SMALL(outer)(const void *left_, int64_t rows, const void *right_,
                         int64_t columns, double rate, void *to_, int64_t stride) {
  const REAL *left = left_, *right = right_;
  REAL *to = to_, by = (REAL)rate;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      to[r * stride + c] = by * left[r] * right[c];
}

/* w = -2 v, bias = sum v - b: then bias + w . p = -(v . a + b), where a = 2 p - 1 */
static void SMALL(energy_weights)(const void *v_, int64_t v_stride, const void *b_,
                                  int64_t b_stride, int64_t rows, int64_t h,
                                  void *w_, int64_t w_stride, void *bias_) {
  const REAL *v = v_, *b = b_;
  REAL *w = w_, *bias = bias_;
  for (int64_t r = 0; r < rows; r++) {
    REAL sum = 0;
    for (int64_t i = 0; i < h; i++) {
      sum += v[r * v_stride + i];
      w[r * w_stride + i] = -2 * v[r * v_stride + i];
    }
    bias[r] = sum - b[r * b_stride];
  }
}

#undef SMALL
