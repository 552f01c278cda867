/* Gates of LSTM cells. A panel has 16 columns of h units, unit after unit. */

INLINE VEC TIER(sigmoid_of)(VEC v) {
  return TIER(tanh_of)(v * (REAL)0.5) * (REAL)0.5 + (REAL)0.5;
}

/* The sums of a panel are s + more + d: those of the gates f that keep c, of the gates o
 * that output it, and of the new values z. These replace s: c = f before + (1 - f) z;
 * a = o tanh(c) */
static void TIER(cell)(void *s_, const void *more_, const void *d_, int64_t h,
                       const void *before_, void *c_, void *a_) {
  REAL *s = s_, *c = c_, *a = a_;
  const REAL *more = more_, *d = d_, *before = before_;
  int64_t size = h * LINE;
  for (int64_t j = 0; j < h; j++) {
    UNROLL for (int v = 0; v < LINE / WIDTH; v++) {
      int64_t at = j * LINE + v * WIDTH;
#define SUM(gate)                                                     \
  (LOAD(s + (gate) * size + at) + LOAD(more + (gate) * size + at) + \
   SPLAT(d[(gate) * h + j]))
      VEC f = TIER(sigmoid_of)(SUM(0)), o = TIER(sigmoid_of)(SUM(1));
      VEC z = TIER(tanh_of)(SUM(2)), now = z + f * (LOAD(before + at) - z);
#undef SUM
      STORE(s + at, f);
      STORE(s + size + at, o);
      STORE(s + 2 * size + at, z);
      STORE(c + at, now);
      STORE(a + at, o * TIER(tanh_of)(now));
    }
  }
}

/* Through `cell`, from da and the dc that comes from the next step: the gates become the
 * slopes of their sums, and dc that of c before. Adds the slopes to dd, (3 h, 16). */
static void TIER(cell_slopes)(void *s_, const void *before_, const void *da_, int64_t h,
                              void *dc_, void *dd_) {
  REAL *s = s_, *dc = dc_, *dd = dd_;
  const REAL *before = before_, *da = da_;
  int64_t size = h * LINE;
  for (int64_t at = 0; at < size; at += WIDTH) {
    VEC f = LOAD(s + at), o = LOAD(s + size + at), z = LOAD(s + 2 * size + at);
    VEC change = LOAD(before + at) - z, t = TIER(tanh_of)(z + f * change);
    VEC slope = LOAD(da + at), all = LOAD(dc + at) + slope * o * ((REAL)1 - t * t);
    VEC of_f = all * change * f * ((REAL)1 - f);
    VEC of_o = slope * t * o * ((REAL)1 - o);
    VEC of_z = all * ((REAL)1 - f) * ((REAL)1 - z * z);
    STORE(s + at, of_f);
    STORE(s + size + at, of_o);
    STORE(s + 2 * size + at, of_z);
    STORE(dd + at, LOAD(dd + at) + of_f);
    STORE(dd + size + at, LOAD(dd + size + at) + of_o);
    STORE(dd + 2 * size + at, LOAD(dd + 2 * size + at) + of_z);
    STORE(dc + at, all * f);
  }
}
