/* Matrix products of bfloat16 with sums in float32, and the choice among them.
 *
 * A bfloat16 is the upper half of a float: its range with 8 bits of precision.
 * The master weights stay in float32; what is multiplied is rounded, to the
 * nearest even, as it is packed for the instruction at hand. All of these
 * multiply pairs along the depth of the product, so there are three forms:
 *
 *   rows     the matrix itself, rounded: the left side A of a product
 *   columns  its transpose, as a left side
 *   pairs    the right side B: rows 2i and 2i + 1 interleaved, in panels of 32
 *            columns, B[panel][i][column][2]
 *
 * Left sides have room for a multiple of 32 rows and columns. What a product
 * meets beyond its depth is zero on one side; on the other it may be left from a
 * product before.
 */
#ifndef NPLM_BFLOAT16_H
#define NPLM_BFLOAT16_H

#include "tiers.h"

/* ---- in plain C ---- */

static float widen_bf16(bf16 value) {
  uint32_t bits = (uint32_t)value << 16;
  float wide;
  memcpy(&wide, &bits, 4);
  return wide;
}

static void pack_rows_plain(const float *from, int64_t stride, int64_t rows,
                            int64_t columns, bf16 *to, int64_t to_stride) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      to[r * to_stride + c] = round_bf16(from[r * stride + c]);
}

static void pack_columns_plain(const float *from, int64_t stride, int64_t rows,
                               int64_t columns, bf16 *to, int64_t to_stride) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      to[c * to_stride + r] = round_bf16(from[r * stride + c]);
}

static void pack_pairs_plain(const float *from, int64_t stride, int64_t rows,
                             int64_t columns, bf16 *to, int64_t panel) {
  for (int64_t r = 0; r < (rows + PANEL - 1) / PANEL * PANEL; r++)
    for (int64_t c = 0; c < columns; c++)
      to[pair_place(r, c, panel)] = r < rows ? round_bf16(from[r * stride + c]) : 0;
}

static void pack_scaled_plain(const float *from, int64_t rows, int64_t columns,
                              const float *factor, bf16 *left, int64_t left_stride,
                              bf16 *right, int64_t panel) {
  for (int64_t r = 0; r < (rows + PANEL - 1) / PANEL * PANEL; r++)
    for (int64_t c = 0; c < columns; c++) {
      bf16 value = r < rows ? round_bf16(from[c / LINE * rows * LINE + r * LINE + c % LINE] *
                                       factor[c]) : 0;
      if (right != NULL) right[pair_place(r, c, panel)] = value;
      if (r < rows) left[r * left_stride + c] = value;
    }
}

/* ---- AMX tiles emulated in C, for tests ---- */

typedef struct {
  union {
    float sums[16][16];
    bf16 numbers[16][32];
  };
} Tile;

static void tile_move(char *to, int64_t to_stride, const char *from,
                      int64_t from_stride) {
  for (int r = 0; r < 16; r++) memcpy(to + r * to_stride, from + r * from_stride, 64);
}

static void tile_product(Tile *C, const Tile *A, const Tile *B) {
  for (int r = 0; r < 16; r++)
    for (int d = 0; d < 32; d++)
      for (int c = 0; c < 16; c++)
        C->sums[r][c] += widen_bf16(A->numbers[r][d]) *
                         widen_bf16(B->numbers[d / 2][2 * c + d % 2]);
}

#define AMX(name) name##_plain
#define TILES_BEGIN Tile tile[8];
#define TILE_ZERO(t) memset(&tile[t], 0, sizeof(Tile))
#define TILE_LOAD(t, from, stride) \
  tile_move((char *)&tile[t], 64, (const char *)(from), stride)
#define TILE_STORE(t, to, stride) \
  tile_move((char *)(to), stride, (const char *)&tile[t], 64)
#define TILE_PRODUCT(c, a, b) tile_product(&tile[c], &tile[a], &tile[b])
#define TILES_END
#include "bfloat16_tiles.h"

static const Bfloat16 bfloat16_plain = {
    pack_rows_plain, pack_columns_plain, pack_pairs_plain, pack_scaled_plain,
    product_plain};

/* GCC supports AMX from version 11. In Microsoft's dialect clang declares only the
 * instructions that all of a file may use. */
#if defined(NPLM_X86_TIERS) && !defined(_MSC_VER) && \
    (defined(__clang__) || __GNUC__ >= 11)
#define NPLM_X86_BFLOAT16
#include <cpuid.h>
#include <immintrin.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

FOR_TARGET("avx512f,avx512dq,avx512bw,avx512vl,avx512bf16,avx2,fma")
#include "bfloat16_avx512.h"
END_TARGET

FOR_TARGET("amx-tile,amx-bf16,avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")
typedef struct {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes_a_row[16];
  uint8_t rows[16];
} TileConfiguration;

static const TileConfiguration whole_tiles = {
    1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

#define AMX(name) name##_amx
#define TILES_BEGIN _tile_loadconfig(&whole_tiles);
#define TILE_ZERO(t) _tile_zero(t)
#define TILE_LOAD(t, from, stride) _tile_loadd(t, from, stride)
#define TILE_STORE(t, to, stride) _tile_stored(t, to, stride)
#define TILE_PRODUCT(c, a, b) _tile_dpbf16ps(c, a, b)
#define TILES_END _tile_release();
#include "bfloat16_tiles.h"
END_TARGET

static const Bfloat16 bfloat16_amx = {
    pack_rows_avx512, pack_columns_avx512, pack_pairs_avx512, pack_scaled_avx512,
    product_amx};

static int has_avx512_bf16(void) {
  unsigned a, b, c, d;
  return find_loops("avx512", 0) && __get_cpuid_count(7, 1, &a, &b, &c, &d) &&
         (a >> 5 & 1);
}

/* Linux enables tiles for a process on request only. */
static int has_amx_bf16(void) {
#if defined(__linux__) && defined(SYS_arch_prctl)
  enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
  unsigned a, b, c, d;
  return has_avx512_bf16() && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
         (d >> 22 & 1) && (d >> 24 & 1) &&
         syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
  return 0;
#endif
}
#endif

/* Return the products of a tier by name, or NULL if this processor lacks them. */
static const Bfloat16 *find_bfloat16(const char *tier) {
  if (strcmp(tier, "plain") == 0) return &bfloat16_plain;
#ifdef NPLM_X86_BFLOAT16
  if (strcmp(tier, "amx") == 0 && has_amx_bf16()) return &bfloat16_amx;
  if (strcmp(tier, "avx512") == 0 && has_avx512_bf16()) return &bfloat16_avx512;
#endif
  return NULL;
}

#endif
