/* Adam's step, and the steps of a row without gradients. */

/* For each number: first = b1 first + (1 - b1) g; second = b2 second + (1 - b2) g^2;
 * values = keep * values - rate * first / (sqrt(second) + epsilon). `keep` has one
 * number for all, or one for each if `keep_each`. */
static void TIER(adam)(void *values_, const void *gradient_, void *first_,
                       void *second_, int64_t n, const void *keep_, int keep_each,
                       const Moments *by) {
  REAL *values = values_, *first = first_, *second = second_;
  const REAL *gradient = gradient_, *keep = keep_;
  for (int64_t i = 0; i < n; i += WIDTH) {
    VEC v = TIER(load_some)(values + i, n - i);
    VEC g = TIER(load_some)(gradient + i, n - i);
    VEC m = TIER(load_some)(first + i, n - i);
    VEC s = TIER(load_some)(second + i, n - i);
    VEC k = keep_each ? TIER(load_some)(keep + i, n - i) : SPLAT(keep[0]);
    VEC root = (VEC){};
    m = m * (REAL)by->beta_1 + g * (REAL)(1 - by->beta_1);
    s = s * (REAL)by->beta_2 + g * g * (REAL)(1 - by->beta_2);
    for (int lane = 0; lane < WIDTH; lane++) root[lane] = SQUARE_ROOT(s[lane]);
    v = v * k + m * (REAL)by->rate / (root + (REAL)by->epsilon);
    TIER(store_some)(values + i, v, n - i);
    TIER(store_some)(first + i, m, n - i);
    TIER(store_some)(second + i, s, n - i);
  }
}

/* The same for n updates without gradients, at once: beta_1 and beta_2 to the power n,
 * and the rate times beta_1 + ... + beta_1^n, as if second did not change. A share of the
 * values decays. */
static void TIER(adam_pause)(void *values_, void *first_, void *second_, int64_t n,
                             double share, const Moments *by) {
  REAL *values = values_, *first = first_, *second = second_;
  for (int64_t i = 0; i < n; i += WIDTH) {
    VEC v = TIER(load_some)(values + i, n - i);
    VEC m = TIER(load_some)(first + i, n - i);
    VEC s = TIER(load_some)(second + i, n - i);
    VEC root = (VEC){};
    for (int lane = 0; lane < WIDTH; lane++) root[lane] = SQUARE_ROOT(s[lane]);
    v = v - v * (REAL)share + m * (REAL)by->rate / (root + (REAL)by->epsilon);
    TIER(store_some)(values + i, v, n - i);
    TIER(store_some)(first + i, m * (REAL)by->beta_1, n - i);
    TIER(store_some)(second + i, s * (REAL)by->beta_2, n - i);
  }
}
