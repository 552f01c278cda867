/* Trees: a branch of an inner node is a row of E. */

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

/* Of the rows of a node, as g[i] are the slopes of their logits:
 *   dz += g[i] E[i];  gradients[i] += g[i] z */
static void TIER(branch_gradients)(const void *E_, int64_t rows, int64_t stride,
                                   const void *g_, const void *z_, void *gradients_,
                                   void *dz_) {
  const REAL *E = E_, *g = g_, *z = z_;
  REAL *gradients = gradients_, *dz = dz_;
  for (int64_t i = 0; i < rows; i++, E += stride, gradients += stride) {
    VEC slope = SPLAT(g[i]);
    for (int64_t d = 0; d < stride; d += WIDTH) {
      STORE(dz + d, LOAD(dz + d) + slope * LOAD(E + d));
      STORE(gradients + d, LOAD(gradients + d) + slope * LOAD(z + d));
    }
  }
}

/* From the root down, the logarithms of the probabilities of all nodes: of words, then
 * of inner nodes, whose parents come before them. Branches starts[i] to starts[i + 1]
 * are those of node i; logits (branches, columns). */
static void TIER(descend)(const int *branches, const int64_t *starts, int64_t n_nodes,
                          int64_t n_words, const void *logits_, int64_t columns,
                          void *log_p_) {
  const REAL *logits = logits_;
  REAL *log_p = log_p_;
  for (int64_t node = 0; node < n_nodes; node++)
    for (int64_t k = 0; k < columns; k += WIDTH) {
      int64_t first = starts[node], end = starts[node + 1];
      VEC all = LOAD(logits + first * columns + k); /* log of the sum of exponentials */
      for (int64_t i = first + 1; i < end; i++) {
        VEC y = LOAD(logits + i * columns + k);
        all = TIER(max)(all, y) + TIER(log_1_plus)(TIER(exp_of_size)(all - y));
      }
      VEC rest = LOAD(log_p + (n_words + node) * columns + k) - all;
      for (int64_t i = first; i < end; i++)
        STORE(log_p + branches[i] * columns + k, rest + LOAD(logits + i * columns + k));
    }
}
