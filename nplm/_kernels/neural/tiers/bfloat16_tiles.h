/* The product with AMX's tiles: 16 x 16 sums, 16 rows of 32 numbers.
 *
 * bfloat16.h includes this file for the processor's tiles, and for the same in
 * plain C. Two by two tiles of sums, two of A and two of B fill the eight there
 * are.
 */

static void AMX(product)(const bf16 *A, int64_t A_stride, const bf16 *B,
                         int64_t panel, int64_t rows, int64_t columns,
                         int64_t depth, float *C, int64_t C_stride,
                         int64_t C_panel, const float *keep, float rate) {
  float block[32][32] __attribute__((aligned(64)));
  TILES_BEGIN
  for (int64_t c0 = 0; c0 < columns; c0 += 32) {
    const bf16 *right = B + c0 / PANEL * panel;
    int64_t n_columns = columns - c0 < 32 ? columns - c0 : 32;
    int wide = n_columns > 16;
    for (int64_t r0 = 0; r0 < rows; r0 += 32) {
      const bf16 *left = A + r0 * A_stride;
      int64_t n_rows = rows - r0 < 32 ? rows - r0 : 32;
      int tall = n_rows > 16;
      TILE_ZERO(0);
      TILE_ZERO(1);
      TILE_ZERO(2);
      TILE_ZERO(3);
      for (int64_t d = 0; d < depth; d += 32) {
        TILE_LOAD(4, left + d, A_stride * 2);
        TILE_LOAD(6, right + d * PANEL, PANEL * 4);
        TILE_PRODUCT(0, 4, 6);
        if (wide) {
          TILE_LOAD(7, right + d * PANEL + 32, PANEL * 4);
          TILE_PRODUCT(1, 4, 7);
        }
        if (tall) {
          TILE_LOAD(5, left + 16 * A_stride + d, A_stride * 2);
          TILE_PRODUCT(2, 5, 6);
          if (wide) TILE_PRODUCT(3, 5, 7);
        }
      }
      float *at = C + r0 * C_stride + c0 / LINE * C_panel;
      if (keep == NULL && n_rows == 32 && n_columns == 32) {
        TILE_STORE(0, at, C_stride * 4);
        TILE_STORE(1, at + C_panel, C_stride * 4);
        TILE_STORE(2, at + 16 * C_stride, C_stride * 4);
        TILE_STORE(3, at + 16 * C_stride + C_panel, C_stride * 4);
        continue;
      }
      TILE_STORE(0, block[0], 128);
      TILE_STORE(1, block[0] + 16, 128);
      TILE_STORE(2, block[16], 128);
      TILE_STORE(3, block[16] + 16, 128);
      for (int64_t r = 0; r < n_rows; r++)
        for (int64_t c = 0; c < n_columns; c++) {
          float *sum = at + r * C_stride + c / LINE * C_panel + c % LINE;
          *sum = keep == NULL ? block[r][c] : *sum * keep[c0 + c] + rate * block[r][c];
        }
    }
  }
  TILES_END
}

#undef AMX
#undef TILES_BEGIN
#undef TILE_ZERO
#undef TILE_LOAD
#undef TILE_STORE
#undef TILE_PRODUCT
#undef TILES_END
