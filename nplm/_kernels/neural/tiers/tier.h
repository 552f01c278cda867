/* The network's inner loops, written once for every vector width and both types.
 *
 * tiers.h includes this file once per instruction set and type, with
 *   TIER(name)   the function's name in this instruction set and type
 *   REAL, INT    float and int32_t, or double and int64_t
 *   WIDTH        numbers in a vector
 *   LANES(f, x)  f(0, x), f(1, x), ... for the numbers of a vector
 *   ROWS         rows of a register block: ROWS x 2 accumulators, the two
 *                vectors that meet them and a broadcast fill the registers
 *   ABREAST      rows updated at once when there is one example
 *
 * All matrices are row-major. Rows of E and columns of examples are padded to a
 * multiple of 16 numbers, so that no loop over vectors has a remainder. Every
 * loop over accumulators is unrolled by hand of the compiler, their
 * initialisation too: otherwise they live in memory, at a tenth of the speed.
 */

typedef REAL TIER(vec) __attribute__((vector_size(sizeof(REAL) * WIDTH)));
typedef INT TIER(ivec) __attribute__((vector_size(sizeof(REAL) * WIDTH)));
typedef REAL TIER(uvec) __attribute__((vector_size(sizeof(REAL) * WIDTH),
                                       aligned(sizeof(REAL)), may_alias));
#define VEC TIER(vec)
#define IVEC TIER(ivec)
#define LOAD(p) ((VEC) * (const TIER(uvec) *)(p))
#define STORE(p, v) (*(TIER(uvec) *)(p) = (TIER(uvec))(v))
#define SPLAT(x) ((REAL)(x) - (VEC){})

/* `count` numbers, where a whole vector may be too many; zeros fill it up. */
INLINE VEC TIER(load_some)(const REAL *from, int64_t count) {
  if (count >= WIDTH) return LOAD(from);
  VEC v = (VEC){};
  memcpy(&v, from, count * sizeof(REAL));
  return v;
}

INLINE void TIER(store_some)(REAL *to, VEC v, int64_t count) {
  if (count >= WIDTH)
    STORE(to, v);
  else
    memcpy(to, &v, count * sizeof(REAL));
}

INLINE VEC TIER(max)(VEC a, VEC b) {
  IVEC mask = a > b;
  return (VEC)(((IVEC)a & mask) | ((IVEC)b & ~mask));
}

#ifdef REAL_IS_FLOAT
/* exp(x) for x <= 0, where every softmax and tanh needs it. x = n ln 2 + r with
 * |r| <= ln 2 / 2, a polynomial for exp(r) (of least relative error, 1e-7, with 1 + r
 * as it begins), and n added to the exponent's bits. Where 1.5 * 2^23 is added, a
 * float's last bits are a whole number. Relative error below 3e-7; below exp(-87) the
 * result stays at exp(-87). */
INLINE VEC TIER(exp_negative)(VEC x) {
  x = TIER(max)(SPLAT(-87.0f), x); /* in this order a NaN stays one */
  VEC n = x * 1.44269504f + 12582912.0f;
  VEC fn = n - 12582912.0f;
  VEC r = x - fn * 0.693359375f;
  r = r + fn * 2.12194440e-4f;
  VEC p = r * 8.312525e-3f + 4.1890115e-2f;
  p = p * r + 1.6667114e-1f;
  p = p * r + 4.999923e-1f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return (VEC)((IVEC)p + ((IVEC)n << 23));
}
#else
/* Double precision is for checking, not for speed: the C library's. */
INLINE VEC TIER(exp_negative)(VEC x) {
  for (int lane = 0; lane < WIDTH; lane++) x[lane] = exp(x[lane]);
  return x;
}
#endif

/* ---- matrix products ----
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

/* ---- elementwise ---- */

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
      high[v] = other[v] = SPLAT(-REAL_MAX); /* that all are -inf is no NaN */
      sum[v] = (VEC){};
    }
    /* Every other row, or each maximum would wait for the last. */
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

#define TO_UPPER(lane, size) ((lane) & (size) ? ((lane) ^ (size)) + WIDTH : (lane))
#define TO_LOWER(lane, size) ((lane) & (size) ? (lane) + WIDTH : (lane) ^ (size))
#define EXCHANGE_HALVES(size)                                     \
  UNROLL for (int i = 0; i < WIDTH; i++) {                        \
    if (i & (size)) continue;                                     \
    VEC upper = v[i], lower = v[i + (size)];                      \
    v[i] = SHUFFLE(IVEC, upper, lower, LANES(TO_UPPER, size));          \
    v[i + (size)] = SHUFFLE(IVEC, upper, lower, LANES(TO_LOWER, size)); \
  }
/* v[i][j] = v[j][i]: exchange the halves of blocks of 2, 4, ... rows and columns. */
INLINE void TIER(exchange)(VEC *v) {
  EXCHANGE_HALVES(1)
#if WIDTH > 2
  EXCHANGE_HALVES(2)
#endif
#if WIDTH > 4
  EXCHANGE_HALVES(4)
#endif
#if WIDTH > 8
  EXCHANGE_HALVES(8)
#endif
}

/* to[k, r] = from[r, k] */
static void TIER(transpose)(const void *from_, int64_t stride, int64_t rows,
                            int64_t columns, void *to_, int64_t to_stride) {
  const REAL *from = from_;
  REAL *to = to_;
  int64_t r = 0;
  for (; r + WIDTH <= rows; r += WIDTH) {
    int64_t k = 0;
    for (; k + WIDTH <= columns; k += WIDTH) {
      VEC v[WIDTH];
      UNROLL for (int i = 0; i < WIDTH; i++) {
        v[i] = LOAD(from + (r + i) * stride + k);
      }
      TIER(exchange)(v);
      UNROLL for (int i = 0; i < WIDTH; i++) {
        STORE(to + (k + i) * to_stride + r, v[i]);
      }
    }
    for (; k < columns; k++)
      for (int i = 0; i < WIDTH; i++)
        to[k * to_stride + r + i] = from[(r + i) * stride + k];
  }
  for (; r < rows; r++)
    for (int64_t k = 0; k < columns; k++)
      to[k * to_stride + r] = from[r * stride + k];
}

/* A row-major matrix transposed into panels, its columns filled up with zeros: to[c, r]
 * = from[r, c] */
static void TIER(into_panels)(const void *from_, int64_t stride, int64_t rows,
                              int64_t columns, void *to_, int64_t to_columns) {
  for (int64_t r = 0; r < to_columns; r += LINE) {
    REAL *panel = (REAL *)to_ + r * columns;
    int64_t some = rows - r < LINE ? rows - r : LINE;
    if (some < LINE) memset(panel, 0, columns * LINE * sizeof(REAL));
    if (some > 0)
      TIER(transpose)((const REAL *)from_ + r * stride, stride, some, columns, panel,
                      LINE);
  }
}

/* And back: to[c, r] = from[r, c] for the first columns of a matrix in panels. */
static void TIER(out_of_panels)(const void *from_, int64_t rows, int64_t columns,
                                void *to_, int64_t to_stride) {
  for (int64_t c = 0; c < columns; c += LINE)
    TIER(transpose)((const REAL *)from_ + c * rows, LINE, rows,
                    columns - c < LINE ? columns - c : LINE,
                    (REAL *)to_ + c * to_stride, to_stride);
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

/* values = tanh(values); tanh(v) = sign(v) (1 - e) / (1 + e), e = exp(-2 |v|) */
static void TIER(tanh)(void *values_, int64_t n) {
  REAL *values = values_;
#ifdef REAL_IS_FLOAT
  for (int64_t i = 0; i < n; i += WIDTH) {
    VEC v = TIER(load_some)(values + i, n - i);
    IVEC sign = (IVEC)v & INT32_MIN;
    VEC e = TIER(exp_negative)((VEC)((IVEC)v | INT32_MIN) * 2.0f);
    v = (VEC)((IVEC)((1.0f - e) / (1.0f + e)) | sign);
    TIER(store_some)(values + i, v, n - i);
  }
#else
  for (int64_t i = 0; i < n; i++) values[i] = tanh(values[i]);
#endif
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

/* ---- one example at a time: each output row is read or written once ---- */

INLINE REAL TIER(total)(VEC v) {
#ifdef REAL_IS_FLOAT
  typedef float quad __attribute__((vector_size(16)));
  union {
    VEC v;
    quad q[WIDTH / 4];
  } parts = {v};
  quad sum = parts.q[0];
  for (int i = 1; i < WIDTH / 4; i++) sum += parts.q[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
#else
  REAL sum = v[0];
  for (int lane = 1; lane < WIDTH; lane++) sum += v[lane];
  return sum;
#endif
}

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

/* logits[r] = E[r] . z, fetching rows so far ahead from memory */
static void TIER(row_dots)(const void *E_, int64_t rows, int64_t stride, const void *z_,
                           int64_t rows_ahead, void *logits_) {
  const REAL *E = E_;
  const REAL *z = z_;
  REAL *logits = logits_;
  int64_t ahead = rows_ahead * stride;
  for (int64_t r = 0; r < rows; r++) {
    const REAL *row = E + r * stride;
    VEC sum = (VEC){};
    int64_t i = 0;
    for (; i + WIDTH <= stride; i += WIDTH) {
      __builtin_prefetch(row + ahead + i);
      sum += LOAD(row + i) * LOAD(z + i);
    }
    logits[r] = TIER(total)(sum);
    for (; i < stride; i++) logits[r] += row[i] * z[i];
  }
}

/* Section 3.2, step 2(a), in one pass over the rows:
 *   dz += g[r] E[r];  E[r] = keep * E[r] + rate g[r] z */
static void TIER(row_updates)(void *E_, int64_t rows, int64_t stride, const void *z_,
                              const void *g_, double rate_, const void *keep_,
                              void *dz_) {
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
    for (; i + WIDTH <= stride; i += WIDTH) {
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
    for (; i < stride; i++)
      for (int q = 0; q < ABREAST; q++) {
        REAL *at = row + q * stride + i;
        dz[i] += g[r + q] * *at;
        *at = keep[i] * *at + rate * g[r + q] * z[i];
      }
  }
  for (; r < rows; r++)
    for (int64_t i = 0; i < stride; i++) {
      REAL *at = E + r * stride + i;
      dz[i] += g[r] * *at;
      *at = keep[i] * *at + rate * g[r] * z[i];
    }
}

/* ---- trees: an inner node is a row of E, and a branch its sign ---- */

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

/* ---- energies (section 5.1) ---- */

/* 1 / d, for d from 1 to 2^125; within 3e-7 of it */
INLINE VEC TIER(reciprocal)(VEC d) {
#ifdef RECIPROCAL
  VEC r = RECIPROCAL(d);
  return r * (2 - d * r); /* a step of Newton's doubles the bits that are right */
#else
  return 1 / d;
#endif
}

/* values = exp(-2 values). With q of s the tanh of s is 2 / (1 + q) - 1, and q of a
 * sum is the product of the q: a sum costs a reciprocal where a tanh costs an
 * exponential. Beyond +-21 (double: 350) a term counts as that, lest q overflow. */
static void TIER(tanh_factors)(void *values_, int64_t n) {
  REAL *values = values_;
  for (int64_t i = 0; i < n; i += WIDTH) {
    VEC v = LOAD(values + i);
#ifdef REAL_IS_FLOAT
    VEC x = (VEC)((IVEC)v | INT32_MIN) * 2.0f; /* -2 |v| */
    VEC e = TIER(exp_negative)(TIER(max)(SPLAT(-42.0f), x));
    IVEC mask = v < SPLAT(0);
    v = (VEC)(((IVEC)(1.0f / e) & mask) | ((IVEC)e & ~mask));
#else
    for (int lane = 0; lane < WIDTH; lane++) {
      REAL s = v[lane] > 350 ? 350 : v[lane];
      v[lane] = exp(-2 * (s < -350 ? -350 : s));
    }
#endif
    STORE(values + i, v);
  }
}

/* Of some words: logits[r, k] = bias[r] + sum_i w[r, i] / (1 + z[k, i] G[r, i]).
 * G and logits are in panels of `rows`, all words here. */
INLINE void TIER(some_energies)(const int words, const REAL *G, const REAL *w,
                                int64_t w_stride, const REAL *bias, int64_t lanes,
                                const REAL *z, int64_t K, REAL *logits,
                                int64_t rows) {
  for (int64_t k = 0; k < K; k++) {
    VEC sum[4];
    UNROLL for (int r = 0; r < words; r++) sum[r] = (VEC){};
    for (int64_t i = 0; i < lanes; i += WIDTH) {
      VEC q = LOAD(z + k * lanes + i);
      UNROLL for (int r = 0; r < words; r++) {
        VEC p = TIER(reciprocal)(q * LOAD(G + PLACE(i, rows) + r * LINE) + 1);
        sum[r] += LOAD(w + r * w_stride + i) * p;
      }
    }
    UNROLL for (int r = 0; r < words; r++) {
      logits[PLACE(k, rows) + r * LINE] = bias[r] + TIER(total)(sum[r]);
    }
  }
}

/* The rows of w lie `w_stride` apart: 0 is one for all words. */
static void TIER(energies)(const void *G_, const void *w_, int64_t w_stride,
                           const void *bias_, int64_t rows, int64_t lanes,
                           const void *z_, int64_t K, void *logits_) {
  const REAL *G = G_, *w = w_, *bias = bias_, *z = z_;
  REAL *logits = logits_;
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4)
    TIER(some_energies)(4, G + r * LINE, w + r * w_stride, w_stride, bias + r,
                        lanes, z, K, logits + r * LINE, rows);
  for (; r < rows; r++)
    TIER(some_energies)(1, G + r * LINE, w + r * w_stride, w_stride, bias + r,
                        lanes, z, K, logits + r * LINE, rows);
}

/* From the gradients g of these logits to those of the sums s = z + G, through
 * a = 2 p - 1, p = 1 / (1 + q): dp/ds = 2 (p - p^2), w = -2 v.
 *   dz[k] += of s;  dG[r] = the sum over k;  dv[r] -= g a;  sums[r] = the sum of g */
INLINE void TIER(some_energy_slopes)(const int words, const REAL *G, const REAL *w,
                                     int64_t w_stride, int64_t lanes, const REAL *z,
                                     const REAL *g, int64_t K, int64_t rows,
                                     REAL *dz, REAL *dG, REAL *dv, REAL *sums) {
  UNROLL for (int r = 0; r < words; r++) {
    sums[r] = 0;
    for (int64_t k = 0; k < K; k++) sums[r] += g[PLACE(k, rows) + r * LINE];
  }
  for (int64_t i = 0; i < lanes; i += WIDTH) {
    VEC G_[4], twice_w[4], down[4], along[4];
    UNROLL for (int r = 0; r < words; r++) {
      G_[r] = LOAD(G + PLACE(i, rows) + r * LINE);
      twice_w[r] = LOAD(w + r * w_stride + i) * 2;
      down[r] = along[r] = (VEC){};
    }
    for (int64_t k = 0; k < K; k++) {
      VEC q = LOAD(z + k * lanes + i), up = LOAD(dz + k * lanes + i);
      UNROLL for (int r = 0; r < words; r++) {
        VEC p = TIER(reciprocal)(q * G_[r] + 1);
        VEC slope = p * SPLAT(g[PLACE(k, rows) + r * LINE]);
        along[r] += slope;
        slope -= slope * p;
        down[r] += slope;
        up += slope * twice_w[r];
      }
      STORE(dz + k * lanes + i, up);
    }
    UNROLL for (int r = 0; r < words; r++) {
      REAL *at = dv + r * w_stride + i;
      STORE(at, LOAD(at) + (sums[r] - along[r] * 2));
      STORE(dG + r * lanes + i, down[r] * twice_w[r]);
    }
  }
}

static void TIER(energy_slopes)(const void *G_, const void *w_, int64_t w_stride,
                                int64_t rows, int64_t lanes, const void *z_,
                                const void *g_, int64_t K, void *dz, void *dG_,
                                void *dv_, void *sums_) {
  const REAL *G = G_, *w = w_, *z = z_, *g = g_;
  REAL *dG = dG_, *dv = dv_, *sums = sums_;
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4)
    TIER(some_energy_slopes)(4, G + r * LINE, w + r * w_stride, w_stride, lanes, z,
                             g + r * LINE, K, rows, dz, dG + r * lanes,
                             dv + r * w_stride, sums + r);
  for (; r < rows; r++)
    TIER(some_energy_slopes)(1, G + r * LINE, w + r * w_stride, w_stride, lanes, z,
                             g + r * LINE, K, rows, dz, dG + r * lanes,
                             dv + r * w_stride, sums + r);
}

/* ---- Adam ---- */

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

/* ---- weighted sums of rows that lie anywhere (averages of distant words) ---- */

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

static const Loops TIER(loops) = {
    TIER(forward_tile), TIER(backward_tile), TIER(update_tile),
    TIER(exp_columns),  TIER(scale_columns), TIER(exp_row),
    TIER(tanh),         TIER(row_dots),      TIER(row_updates),
    TIER(transpose),    TIER(exp_differences), TIER(adam),
    TIER(into_panels),  TIER(out_of_panels),
    TIER(forward_column), TIER(exp_column),  TIER(path_margins),
    TIER(path_gradients), TIER(log_sigmoids), TIER(descend),
    TIER(add),          TIER(fade),
    TIER(tanh_factors), TIER(energies),      TIER(energy_slopes),
    TIER(combine),      TIER(dots),
    SMALL_LOOPS,
};

#undef VEC
#undef IVEC
#undef LOAD
#undef STORE
#undef SPLAT
#undef EACH_SUM
#undef PLACES
#undef PLACE
#undef ADD_PRODUCT
#undef COVER
#undef COVER_LINE
#undef TIER
#undef WIDTH
#undef ROWS
#undef ABREAST
#undef LANES
#undef RECIPROCAL
#undef TO_UPPER
#undef TO_LOWER
#undef EXCHANGE_HALVES
