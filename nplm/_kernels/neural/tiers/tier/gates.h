/* Gates, and a memory of h units. */

/* values = sigmoid(values), as (1 + tanh(v / 2)) / 2 */
static void TIER(sigmoid)(void *values_, int64_t n) {
  REAL *values = values_;
  int64_t i = 0;
  for (; i + WIDTH <= n; i += WIDTH) STORE(values + i, LOAD(values + i) * (REAL)0.5);
  for (; i < n; i++) values[i] *= (REAL)0.5;
  TIER(tanh)(values, n);
  for (i = 0; i + WIDTH <= n; i += WIDTH)
    STORE(values + i, LOAD(values + i) * (REAL)0.5 + (REAL)0.5);
  for (; i < n; i++) values[i] = values[i] * (REAL)0.5 + (REAL)0.5;
}

/* A row has the new values z of h units, the gates k, which keep the memory, and the gates
 * o, which output it. c = k before + (1 - k) z; a = below + o c */
static void TIER(remember)(const void *row_, const void *before_, const void *below_,
                           int64_t h, void *c_, void *a_) {
  const REAL *z = row_, *k = z + h, *o = k + h, *before = before_, *below = below_;
  REAL *c = c_, *a = a_;
  int64_t i = 0;
  for (; i + WIDTH <= h; i += WIDTH) {
    VEC to = LOAD(z + i);
    VEC now = to + LOAD(k + i) * (LOAD(before + i) - to);
    STORE(c + i, now);
    STORE(a + i, LOAD(below + i) + LOAD(o + i) * now);
  }
  for (; i < h; i++) {
    c[i] = z[i] + k[i] * (before[i] - z[i]);
    a[i] = below[i] + o[i] * c[i];
  }
}

/* Through `remember`, tanh and the sigmoids, from da and the dc that comes from the next
 * example: the row becomes the slopes of its sums, and dc that of `before`. */
static void TIER(remember_slopes)(void *row_, const void *before_, const void *c_,
                                  const void *da_, int64_t h, void *dc_) {
  REAL *z = row_, *k = z + h, *o = k + h, *dc = dc_;
  const REAL *before = before_, *c = c_, *da = da_;
  int64_t i = 0;
  for (; i + WIDTH <= h; i += WIDTH) {
    VEC to = LOAD(z + i), keep = LOAD(k + i), out = LOAD(o + i), slope = LOAD(da + i);
    VEC all = LOAD(dc + i) + slope * out;
    STORE(o + i, slope * LOAD(c + i) * out * ((REAL)1 - out));
    STORE(k + i, all * (LOAD(before + i) - to) * keep * ((REAL)1 - keep));
    STORE(z + i, all * ((REAL)1 - keep) * ((REAL)1 - to * to));
    STORE(dc + i, all * keep);
  }
  for (; i < h; i++) {
    REAL to = z[i], keep = k[i], out = o[i], all = dc[i] + da[i] * out;
    o[i] = da[i] * c[i] * out * (1 - out);
    k[i] = all * (before[i] - to) * keep * (1 - keep);
    z[i] = all * (1 - keep) * (1 - to * to);
    dc[i] = all * keep;
  }
}

/* a = below + o c after n rows, from an empty memory, c = 0 */
static void TIER(recall)(const void *rows_, const void *below_, int64_t n, int64_t h,
                         void *a_) {
  const REAL *z = rows_, *k = z + h, *o = z + (n - 1) * 3 * h + 2 * h, *below = below_;
  REAL *a = a_;
  int64_t i = 0;
  for (; i + 4 * WIDTH <= h; i += 4 * WIDTH) { /* so that no sum waits for the last */
    VEC c[4];
    UNROLL for (int v = 0; v < 4; v++) c[v] = (VEC){};
    for (int64_t t = 0; t < n; t++) {
      UNROLL for (int v = 0; v < 4; v++) {
        VEC to = LOAD(z + t * 3 * h + i + v * WIDTH);
        c[v] = to + LOAD(k + t * 3 * h + i + v * WIDTH) * (c[v] - to);
      }
    }
    UNROLL for (int v = 0; v < 4; v++) {
      int64_t j = i + v * WIDTH;
      STORE(a + j, LOAD(below + j) + LOAD(o + j) * c[v]);
    }
  }
  for (; i < h; i++) {
    REAL c = 0;
    for (int64_t t = 0; t < n; t++) {
      REAL to = z[t * 3 * h + i];
      c = to + k[t * 3 * h + i] * (c - to);
    }
    a[i] = below[i] + o[i] * c;
  }
}
