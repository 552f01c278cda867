/* Names that differ between GCC (10 and newer) and clang (14 and newer). */
#ifndef NPLM_COMPILERS_H
#define NPLM_COMPILERS_H

/* With sanitizers, blocks stay functions and loops: unrolled, with a check per number,
 * they would take GCC hours. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NPLM_SANITIZED
#endif
#ifdef NPLM_SANITIZED
#define INLINE static inline
#else
#define INLINE static inline __attribute__((always_inline))
#endif
#define NPLM_PRAGMA(text) _Pragma(#text)

/* FOR_TARGET("avx2") ... END_TARGET: functions that may use those instructions.
 * UNROLL for (...): no loop is left, and arrays that it goes over are registers.
 * SHUFFLE(ivec, a, b, i, j, ...): numbers i, j, ... of a, then b, all of them constants;
 * ivec is a vector of as many integers. */
#ifdef __clang__
#define NPLM_COMPILER __VERSION__
#define FOR_TARGET(name) \
  NPLM_PRAGMA(clang attribute push(__attribute__((target(name))), apply_to = function))
#define END_TARGET NPLM_PRAGMA(clang attribute pop)
#define UNROLL NPLM_PRAGMA(clang loop unroll(full))
#define SHUFFLE(ivec, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define NPLM_COMPILER "GCC " __VERSION__
#define FOR_TARGET(name) NPLM_PRAGMA(GCC push_options) NPLM_PRAGMA(GCC target(name))
#define END_TARGET NPLM_PRAGMA(GCC pop_options)
#define UNROLL NPLM_PRAGMA(GCC unroll 16)
#define SHUFFLE(ivec, a, b, ...) __builtin_shuffle(a, b, (ivec){__VA_ARGS__})
#endif
#ifdef NPLM_SANITIZED
#undef UNROLL
#define UNROLL
#endif

#endif
