/* Transposes, of matrices row-major and in panels. */

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
