/* For LD_PRELOAD: the n-th allocation of nplm's kernels and of NumPy's arrays fails, once.
 *
 * Not all of the process: libraries that are not ours may not bear it. Allocations of
 * arrays are those of `handler`, for PyDataMem_SetHandler; the kernels' own are told by
 * who called.
 *
 * fail_from(n, least) counts those of `least` bytes or more from 1 on and has the n-th
 * fail; n = 0 is none. failed() says whether it has come. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static long left = 0;
static int has_failed = 0;
static size_t smallest = 0;

void fail_from(long n, size_t least) {
  smallest = least;
  has_failed = 0;
  __atomic_store_n(&left, n, __ATOMIC_RELEASE);
}

int failed(void) { return has_failed; }

static int fails(size_t n) {
  if (__atomic_load_n(&left, __ATOMIC_ACQUIRE) <= 0 || n < smallest) return 0;
  if (__atomic_sub_fetch(&left, 1, __ATOMIC_ACQ_REL) != 0) return 0;
  has_failed = 1;
  errno = ENOMEM;
  return 1;
}

static int of_a_kernel(const void *caller) {
  Dl_info found;
  if (__atomic_load_n(&left, __ATOMIC_ACQUIRE) <= 0) return 0;
  return dladdr(caller, &found) && strstr(found.dli_fname, "nplm/_kernels/") != NULL;
}

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

#define CALLER __builtin_return_address(0)

void *malloc(size_t n) {
  return of_a_kernel(CALLER) && fails(n) ? NULL : __libc_malloc(n);
}
void *calloc(size_t n, size_t each) {
  return of_a_kernel(CALLER) && fails(n * each) ? NULL : __libc_calloc(n, each);
}
void *realloc(void *from, size_t n) {
  return of_a_kernel(CALLER) && fails(n) ? NULL : __libc_realloc(from, n);
}

static void *array_malloc(void *own, size_t n) {
  (void)own;
  return fails(n) ? NULL : __libc_malloc(n);
}
static void *array_calloc(void *own, size_t n, size_t each) {
  (void)own;
  return fails(n * each) ? NULL : __libc_calloc(n, each);
}
static void *array_realloc(void *own, void *from, size_t n) {
  (void)own;
  return fails(n) ? NULL : __libc_realloc(from, n);
}
static void array_free(void *own, void *from, size_t n) {
  (void)own;
  (void)n;
  __libc_free(from);
}

/* PyDataMem_Handler (NEP 49). */
struct {
  char name[127];
  uint8_t version;
  void *own;
  void *(*malloc)(void *, size_t);
  void *(*calloc)(void *, size_t, size_t);
  void *(*realloc)(void *, void *, size_t);
  void (*free)(void *, void *, size_t);
} handler = {"fails", 1, NULL, array_malloc, array_calloc, array_realloc, array_free};
