/* Let another thread have the processor. */
#ifndef NPLM_YIELD_H
#define NPLM_YIELD_H

#ifdef _WIN32
/* As windows.h has it, which defines much else. */
__declspec(dllimport) int __stdcall SwitchToThread(void);

static inline void yield_processor(void) { SwitchToThread(); }
#else
#include <sched.h>

static inline void yield_processor(void) { sched_yield(); }
#endif

#endif
