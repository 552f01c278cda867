/* Matrix products.
 *
 * Number (r, c) of a matrix in panels is at PLACE(c, its rows) + r * LINE: 16
 * columns lie together, row after row, so that what a block reads again and again is
 * one stretch of the nearest cache. */

#define PLACE(c, rows) ((c) / LINE * (rows) * LINE + (c) % LINE)

/* A block: ROWS x 2 (or 2 / 3 ROWS x 3, or fewer) vectors of sums. */
#define EACH_SUM                          \
  UNROLL for (int r = 0; r < rows; r++)   \
    UNROLL for (int v = 0; v < vectors; v++)
#define ADD_PRODUCT(left, right)                              \
  do {                                                        \
    VEC x[3];                                                 \
    UNROLL for (int v = 0; v < vectors; v++) {                \
      x[v] = LOAD(right);                                     \
    }                                                         \
    UNROLL for (int r = 0; r < rows; r++) {                   \
      VEC e = SPLAT(left);                                    \
      UNROLL for (int v = 0; v < vectors; v++) {              \
        sum[r][v] += e * x[v];                                \
      }                                                       \
    }                                                         \
  } while (0)

/* logits[r, k] = sum_d E[r, d] zt[d, k], or `more` of it */
INLINE void TIER(forward_block)(const int rows, const int vectors, const int more,
                                const REAL *E, int64_t stride, int64_t depth,
                                const REAL *zt, const int64_t *right, REAL *logits,
                                const int64_t *place) {
  VEC sum[ROWS][3];
  EACH_SUM { sum[r][v] = more ? LOAD(logits + r * LINE + place[v]) : (VEC){}; }
  for (int64_t d = 0; d < depth; d += LINE) {
    int64_t stop = depth - d < LINE ? depth - d : LINE;
    UNROLL for (int r = 0; r < rows; r++) {
      __builtin_prefetch(E + (rows + r) * stride + d);
    }
    for (int64_t q = 0; q < stop; q++) {
      ADD_PRODUCT(E[r * stride + d + q], zt + (d + q) * LINE + right[v]);
    }
  }
  EACH_SUM { STORE(logits + r * LINE + place[v], sum[r][v]); }
}

/* dz[k, i] += sum_j g[j, k] E[j, i] */
INLINE void TIER(backward_block)(const int rows, const int vectors, const REAL *g,
                                 int64_t depth, const REAL *E, int64_t stride,
                                 REAL *dz, const int64_t *place) {
  VEC sum[ROWS][3];
  EACH_SUM { sum[r][v] = LOAD(dz + r * LINE + place[v]); }
  for (int64_t j = 0; j < depth; j++) {
    ADD_PRODUCT(g[j * LINE + r], E + j * stride + v * WIDTH);
  }
  EACH_SUM { STORE(dz + r * LINE + place[v], sum[r][v]); }
}

/* E[r, i] = keep[i] E[r, i] + rate sum_k g[r, k] z[k, i]; `more` of it keeps all. The
 * rate is volatile so that it is not held in a register, which sums need. */
INLINE void TIER(update_block)(const int rows, const int vectors, const int more,
                               const REAL *g, int64_t g_panel, int64_t depth,
                               const REAL *z, const int64_t *place,
                               const volatile REAL *rate,
                               const REAL *keep, REAL *E, int64_t stride,
                               int64_t ahead) {
  VEC sum[ROWS][3];
  EACH_SUM { sum[r][v] = (VEC){}; }
  if (!more) {
    UNROLL for (int r = 0; r < rows; r++) {
      __builtin_prefetch(E + r * stride + ahead, 1, 2);
    }
  }
  for (int64_t k = 0; k < depth; k += LINE, g += g_panel) {
    int64_t stop = depth - k < LINE ? depth - k : LINE;
    for (int64_t q = 0; q < stop; q++) {
      ADD_PRODUCT(g[r * LINE + q], z + (k + q) * LINE + place[v]);
    }
  }
  VEC by = SPLAT(*rate);
  EACH_SUM {
    REAL *at = E + r * stride + v * WIDTH;
    VEC old = LOAD(at);
    if (!more) old *= LOAD(keep + v * WIDTH);
    STORE(at, old + by * sum[r][v]);
  }
}

/* Cover n_rows by n vectors with blocks: of two vectors, the last three if n is odd;
 * of all the rows that the registers hold, then 4 rows, then 1. */
#define COVER(n_rows, n, CALL)                                              \
  do {                                                                      \
    for (int64_t v0 = 0, left = (n); left > 0; v0 += 2, left -= 2) {        \
      int64_t r0 = 0;                                                       \
      if (left == 3) {                                                      \
        for (; r0 + ROWS * 2 / 3 <= (n_rows); r0 += ROWS * 2 / 3)           \
          CALL(ROWS * 2 / 3, 3);                                            \
        for (; r0 < (n_rows); r0++) CALL(1, 3);                             \
        break;                                                              \
      }                                                                     \
      if (left == 1) {                                                      \
        for (; r0 + ROWS <= (n_rows); r0 += ROWS) CALL(ROWS, 1);            \
        for (; r0 < (n_rows); r0++) CALL(1, 1);                             \
        break;                                                              \
      }                                                                     \
      for (; r0 + ROWS <= (n_rows); r0 += ROWS) CALL(ROWS, 2);              \
      for (; r0 + 4 <= (n_rows); r0 += 4) CALL(4, 2);                       \
      for (; r0 < (n_rows); r0++) CALL(1, 2);                               \
    }                                                                       \
  } while (0)
/* The same for 16 rows. Where 2 / 3 ROWS divide them, blocks of three vectors leave none
 * over, and have the most sums for what they load. */
#define COVER_LINE(n, CALL)                                                   \
  do {                                                                        \
    if (ROWS % 3) {                                                           \
      COVER(LINE, n, CALL);                                                   \
      break;                                                                  \
    }                                                                         \
    for (int64_t v0 = 0, left = (n); left > 0;) {                             \
      int64_t now = left == 1 ? 1 : left == 2 || left == 4 ? 2 : 3;           \
      for (int64_t r0 = 0; r0 < LINE; r0 += ROWS * 2 / 3) {                   \
        if (now == 3) CALL(ROWS * 2 / 3, 3);                                  \
        else if (now == 2) CALL(ROWS * 2 / 3, 2);                             \
        else CALL(ROWS * 2 / 3, 1);                                           \
      }                                                                       \
      v0 += now, left -= now;                                                 \
    }                                                                         \
  } while (0)
/* Where the three vectors from v0 on are in a matrix in panels. */
#define PLACES(name, rows)                                                   \
  const int64_t name[3] = {PLACE(v0 * WIDTH, rows), PLACE((v0 + 1) * WIDTH, rows), \
                           PLACE((v0 + 2) * WIDTH, rows)}

static void TIER(forward_tile)(const void *E_, int64_t rows, int64_t stride,
                               int64_t n_outputs, const void *zt_, int64_t columns,
                               void *logits_) {
  const REAL *E = E_;
  const REAL *zt = zt_;
  REAL *logits = logits_;
  /* All columns of some depth before the rest, as much as the nearest cache holds. */
#define CALL(R, N)                                                             \
  do {                                                                         \
    PLACES(right, n_outputs);                                                  \
    PLACES(place, rows);                                                       \
    TIER(forward_block)(R, N, d0 > 0, E + r0 * stride + d0, stride, depth,        \
                      zt + d0 * LINE, right, logits + r0 * LINE, place);     \
  } while (0)
  for (int64_t d0 = 0; d0 < n_outputs; d0 += DEPTH) {
    int64_t depth = n_outputs - d0 < DEPTH ? n_outputs - d0 : DEPTH;
    COVER(rows, columns / WIDTH, CALL);
  }
#undef CALL
}

static void TIER(backward_tile)(const void *E_, int64_t rows, int64_t stride,
                                int64_t n_outputs, const void *g_, int64_t columns,
                                void *dz_) {
  const REAL *E = E_;
  const REAL *g = g_;
  REAL *dz = dz_;
#define CALL(R, N)                                                              \
  do {                                                                          \
    PLACES(place, columns);                                                     \
    TIER(backward_block)(R, N, panel + r0, rows, E + v0 * WIDTH, stride,        \
                         dz + (k0 + r0) * LINE, place);                        \
  } while (0)
  for (int64_t k0 = 0; k0 < columns; k0 += LINE) {
    const REAL *panel = g + k0 * rows;
    COVER_LINE((n_outputs + WIDTH - 1) / WIDTH, CALL);
  }
#undef CALL
}

static void TIER(update_tile)(void *E_, int64_t rows, int64_t stride,
                              int64_t n_outputs, const void *g_, int64_t columns,
                              int64_t K, const void *z_, double rate_,
                              const void *keep_) {
  REAL *E = E_;
  const REAL *g = g_;
  const REAL *z = z_;
  volatile REAL rate = (REAL)rate_;
  const REAL *keep = keep_;
#define CALL(R, N)                                                              \
  do {                                                                          \
    PLACES(place, columns);                                                     \
    TIER(update_block)(R, N, k0 > 0, g + k0 * rows + r0 * LINE, rows * LINE, depth, \
                       z + k0 * LINE, place, &rate, keep + v0 * WIDTH,          \
                       E + r0 * stride + v0 * WIDTH, stride, rows * stride);    \
  } while (0)
  for (int64_t k0 = 0; k0 < K; k0 += BREADTH) {
    int64_t depth = K - k0 < BREADTH ? K - k0 : BREADTH;
    COVER(rows, (n_outputs + WIDTH - 1) / WIDTH, CALL);
  }
#undef CALL
}
