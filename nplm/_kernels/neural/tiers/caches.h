/* Sizes of the processor's caches, from the system. */
#ifndef NPLM_CACHES_H
#define NPLM_CACHES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif
#ifdef __linux__
#include <unistd.h>
#endif

/* Return the bytes of the data cache of a level (1 to 3), or 0 if unknown. */
static int64_t cache_bytes(int level) {
#if defined(__APPLE__)
  /* Of the fast cores, if there are two kinds. */
  static const char *const names[2][3] = {
      {"hw.perflevel0.l1dcachesize", "hw.perflevel0.l2cachesize",
       "hw.perflevel0.l3cachesize"},
      {"hw.l1dcachesize", "hw.l2cachesize", "hw.l3cachesize"}};
  for (int i = 0; i < 2; i++) {
    int64_t size = 0;
    size_t length = sizeof size;
    if (sysctlbyname(names[i][level - 1], &size, &length, NULL, 0) == 0 && size > 0)
      return size;
  }
#elif defined(__linux__)
  /* sysfs first: sysconf may return the sum over all cores of a large machine. */
  for (int index = 0; index < 8; index++) {
    static const char *const fields[3] = {"level", "type", "size"};
    char values[3][32] = {"", "", ""}, path[96];
    for (int i = 0; i < 3; i++) {
      snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s",
               index, fields[i]);
      FILE *file = fopen(path, "r");
      if (file == NULL) break;
      if (fgets(values[i], sizeof values[i], file) == NULL) values[i][0] = 0;
      fclose(file);
    }
    if (atoi(values[0]) != level || values[1][0] == 'I') continue;
    char *unit;
    int64_t size = strtol(values[2], &unit, 10);
    if (*unit == 'K') size <<= 10;
    if (*unit == 'M') size <<= 20;
    if (size > 0) return size;
  }
#if defined(_SC_LEVEL1_DCACHE_SIZE)
  static const int names[3] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                               _SC_LEVEL3_CACHE_SIZE};
  long size = sysconf(names[level - 1]);
  if (size > 0) return size;
#endif
#endif
  return 0;
}

#endif
