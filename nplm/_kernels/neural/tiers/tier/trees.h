/* Trees: an inner node is a row of E, and a branch its sign. */

/* Of x >= 0 through e = exp(-x), 0 <= e <= 1: log(1 + e) = 2 atanh(e / (2 + e)), whose
 * series in s <= 1/3 ends where 1e-8 of it is left. */
INLINE VEC TIER(log_1_plus)(VEC e) {
#ifdef REAL_IS_FLOAT
  VEC s = e / (e + 2.0f), square = s * s;
  VEC p = square * (1.0f / 13) + 1.0f / 11;
  p = p * square + 1.0f / 9;
  p = p * square + 1.0f / 7;
  p = p * square + 1.0f / 5;
  p = p * square + 1.0f / 3;
  p = p * square + 1.0f;
  return p * s * 2.0f;
#else
  for (int lane = 0; lane < WIDTH; lane++) e[lane] = log1p(e[lane]);
  return e;
#endif
}

/* exp(-|x|) */
INLINE VEC TIER(exp_of_size)(VEC x) {
  IVEC sign = (IVEC)SPLAT(-0.0);
  return TIER(exp_negative)((VEC)((IVEC)x | sign));
}

/* margins[i] = E[row] . z where path[i] = row, and -E[row] . z where it is ~row */
static void TIER(path_margins)(const void *E_, int64_t stride, const int *path,
                               int64_t n, const void *z_, void *margins_) {
  const REAL *E = E_, *z = z_;
  REAL *margins = margins_;
  for (int64_t i = 0; i < n; i++) {
    int64_t row = path[i] < 0 ? ~path[i] : path[i];
    VEC sum = (VEC){};
    for (int64_t d = 0; d < stride; d += WIDTH)
      sum += LOAD(E + row * stride + d) * LOAD(z + d);
    REAL dot = TIER(total)(sum);
    margins[i] = path[i] < 0 ? -dot : dot;
  }
}

/* With g = +-slopes[i], as the branch:
 *   dz += g E[row];  gradients[slots[i]] += g z */
static void TIER(path_gradients)(const void *E_, int64_t stride, const int *path,
                                 int64_t n, const void *slopes_, const void *z_,
                                 const int *slots, void *gradients_, void *dz_) {
  const REAL *E = E_, *slopes = slopes_, *z = z_;
  REAL *gradients = gradients_, *dz = dz_;
  for (int64_t i = 0; i < n; i++) {
    const REAL *row = E + (int64_t)(path[i] < 0 ? ~path[i] : path[i]) * stride;
    REAL *gradient = gradients + slots[i] * stride;
    VEC g = SPLAT(path[i] < 0 ? -slopes[i] : slopes[i]);
    for (int64_t d = 0; d < stride; d += WIDTH) {
      STORE(dz + d, LOAD(dz + d) + g * LOAD(row + d));
      STORE(gradient + d, LOAD(gradient + d) + g * LOAD(z + d));
    }
  }
}

/* slopes = sigmoid(-margins);  margins = log sigmoid(margins) */
static void TIER(log_sigmoids)(void *margins_, int64_t n, void *slopes_) {
  REAL *margins = margins_, *slopes = slopes_;
  for (int64_t i = 0; i < n; i += WIDTH) {
    int64_t count = n - i < WIDTH ? n - i : WIDTH;
    VEC m = (VEC){};
    memcpy(&m, margins + i, count * sizeof(REAL));
    VEC e = TIER(exp_of_size)(m), one = SPLAT(1);
    IVEC above = m > 0;
    VEC slope = (VEC)(((IVEC)e & above) | ((IVEC)one & ~above)) / (e + one);
    m = -TIER(max)(-m, (VEC){}) - TIER(log_1_plus)(e);
    memcpy(slopes + i, &slope, count * sizeof(REAL));
    memcpy(margins + i, &m, count * sizeof(REAL));
  }
}

/* From the root down, the logarithms of the probabilities of all nodes: of words, then
 * of inner nodes, whose parents come before them. logits (n_inner, columns) are those
 * of the first child. */
static void TIER(descend)(const int *children, int64_t n_inner, int64_t n_words,
                          const void *logits_, int64_t columns, void *log_p_) {
  const REAL *logits = logits_;
  REAL *log_p = log_p_;
  for (int64_t i = 0; i < n_inner; i++)
    for (int64_t k = 0; k < columns; k += WIDTH) {
      VEC y = LOAD(logits + i * columns + k), zero = (VEC){};
      VEC here = LOAD(log_p + (n_words + i) * columns + k);
      VEC rest = here - TIER(log_1_plus)(TIER(exp_of_size)(y));
      STORE(log_p + children[2 * i] * columns + k, rest - TIER(max)(-y, zero));
      STORE(log_p + children[2 * i + 1] * columns + k, rest - TIER(max)(y, zero));
    }
}
