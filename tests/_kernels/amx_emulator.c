/* Emulate AMX instructions on processors without AMX.
 *
 * The compiled product of bfloat16_tiles.h runs unchanged: each of its tile
 * instructions raises SIGILL, and the handler below decodes, checks and executes it,
 * then continues after it. See Intel's Software Developer's Manual, volume 2:
 * LDTILECFG, TILEZERO, TILELOADD, TILESTORED, TDPBF16PS and TILERELEASE. The results
 * must equal those of the product in plain C.
 */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "bfloat16.h"

static struct {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} shape;
static float tiles[8][16][16];
static int configured;
static long products;

static void refuse(const char *why) {
  fprintf(stderr, "tile instruction refused: %s\n", why);
  _exit(1);
}
#define CHECK(condition) \
  if (!(condition)) refuse(#condition)

static void configure(const void *from) {
  memcpy(&shape, from, sizeof shape);
  CHECK(sizeof shape == 64 && shape.palette == 1 && shape.start_row == 0);
  for (int i = 0; i < 14; i++) CHECK(shape.reserved[i] == 0);
  for (int t = 0; t < 16; t++) {
    CHECK(shape.rows[t] <= (t < 8 ? 16 : 0));
    CHECK(shape.row_bytes[t] <= (t < 8 ? 64 : 0));
  }
  memset(tiles, 0, sizeof tiles);
  configured = 1;
}

static void multiply(int to, int left, int right) {
  CHECK(to != left && to != right && left != right);
  int depth = shape.row_bytes[left] / 4, columns = shape.row_bytes[to] / 4;
  CHECK(shape.rows[left] == shape.rows[to] && shape.rows[right] == depth);
  CHECK(shape.row_bytes[right] == shape.row_bytes[to]);
  for (int r = 0; r < shape.rows[to]; r++)
    for (int d = 0; d < depth; d++)
      for (int c = 0; c < columns; c++) {
        const bf16 *a = (bf16 *)tiles[left][r] + 2 * d;
        const bf16 *b = (bf16 *)tiles[right][d] + 2 * c;
        tiles[to][r][c] += widen_bf16(a[0]) * widen_bf16(b[0]);
        tiles[to][r][c] += widen_bf16(a[1]) * widen_bf16(b[1]);
      }
  products++;
}

enum { NONE, P66, F3, F2 }; /* prefix encoded in a VEX instruction */

static void emulate(int signal, siginfo_t *info, void *context) {
  static const int number[16] = {
      REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const uint8_t *code = (const uint8_t *)registers[REG_RIP];
  (void)signal, (void)info;
  CHECK(code[0] == 0xC4 && (code[1] & 31) == 2);        /* VEX, map 0F38 */
  CHECK((code[2] & 0x84) == 0);                          /* W0, 128 bits */
  int r = !(code[1] & 0x80) << 3, x = !(code[1] & 0x40) << 3,
      b = !(code[1] & 0x20) << 3, third = ~(code[2] >> 3) & 15, prefix = code[2] & 3;
  int opcode = code[3], mod = code[4] >> 6, reg = (code[4] >> 3 & 7) | r,
      rm = code[4] & 7;
  code += 5;

  char *address = NULL;
  int64_t stride = 0, distance = 0;
  int has_index = mod != 3 && rm == 4;
  if (mod != 3) {
    int base = rm;
    if (has_index) {
      int index = (*code >> 3 & 7) | x;
      if (index != 4) stride = registers[number[index]] << (*code >> 6);
      base = *code++ & 7;
    }
    int relative = base == 5 && mod == 0;
    CHECK(!(relative && has_index));
    if (mod == 1) {
      distance = (int8_t)*code++;
    } else if (mod == 2 || relative) {
      int32_t wide;
      memcpy(&wide, code, 4);
      distance = wide;
      code += 4;
    }
    address = relative ? (char *)code : (char *)registers[number[base | b]];
    address += distance;
  }

  if (opcode == 0x49 && mod == 3 && prefix == NONE) {
    configured = 0; /* TILERELEASE */
  } else if (opcode == 0x49 && mod == 3 && prefix == F2) {
    CHECK(configured && reg < 8);
    memset(tiles[reg], 0, sizeof tiles[reg]);
  } else if (opcode == 0x49 && prefix == NONE) {
    configure(address + stride);
  } else if (opcode == 0x4B && has_index && (prefix == F2 || prefix == F3)) {
    CHECK(configured && reg < 8);
    for (int row = 0; row < shape.rows[reg]; row++) {
      char *memory = address + row * stride;
      if (prefix == F2)
        memcpy(tiles[reg][row], memory, shape.row_bytes[reg]);
      else
        memcpy(memory, tiles[reg][row], shape.row_bytes[reg]);
    }
  } else if (opcode == 0x5C && mod == 3 && prefix == F3) {
    CHECK(configured && reg < 8 && third < 8);
    multiply(reg, rm, third);
  } else {
    refuse("unknown instruction");
  }
  registers[REG_RIP] = (greg_t)code;
}

static float number(void) { return (rand() % 2001 - 1000) * 1e-3f; }

static void *zeros(size_t bytes) { return calloc(bytes, 1); }

/* Compute C = A B, or keep C + rate A B, in both ways; return whether they agree. */
static int agree(int rows, int columns, int depth, int keeps) {
  int A_stride = (depth + 31) / 32 * 32, A_rows = (rows + 31) / 32 * 32,
      panel = A_stride * PANEL, stride = (depth + 15) / 16 * 16;
  float *a = zeros(4 * rows * stride), *b = zeros(4 * depth * columns);
  float *plain = zeros(4 * rows * columns), *amx = zeros(4 * rows * columns);
  float *keep = zeros(4 * columns);
  bf16 *A = zeros(2 * A_rows * A_stride);
  bf16 *B = zeros((columns + 31) / 32 * panel * 2);
  for (int r = 0; r < rows; r++)
    for (int d = 0; d < depth; d++) a[r * stride + d] = number();
  for (int i = 0; i < depth * columns; i++) b[i] = number();
  for (int i = 0; i < rows * columns; i++) plain[i] = amx[i] = number();
  for (int c = 0; c < columns; c++) keep[c] = number();
  pack_rows_plain(a, stride, rows, stride, A, A_stride);
  pack_pairs_plain(b, columns, depth, columns, B, panel);
  const float *kept = keeps ? keep : NULL;
  product_plain(A, A_stride, B, panel, rows, columns, depth, plain, columns, 16, kept, .3f);
  product_amx(A, A_stride, B, panel, rows, columns, depth, amx, columns, 16, kept, .3f);
  int same = !configured;
  for (int i = 0; i < rows * columns; i++) same &= fabsf(plain[i] - amx[i]) < 1e-5f;
  free(a), free(b), free(plain), free(amx), free(keep), free(A), free(B);
  return same;
}

int main(void) {
  struct sigaction action = {.sa_sigaction = emulate, .sa_flags = SA_SIGINFO};
  sigaction(SIGILL, &action, NULL);
  for (int i = 0; i < 100; i++) {
    int rows = 1 + rand() % 70, columns = 16 + rand() % 5 * 16, depth = 1 + rand() % 90;
    if (!agree(rows, columns, depth, i % 2)) {
      printf("%d x %d, depth %d: results differ\n", rows, columns, depth);
      return 1;
    }
  }
  printf("%ld products of tiles\n", products);
  return products == 0;
}
