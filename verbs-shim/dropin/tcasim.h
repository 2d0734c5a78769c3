// For programs that know that they may run in simulated time. On a real machine, and in a run without simulated time,
// these functions do nothing: link with libtcasim.so, or with no library (define TCASIM_NONE before the include).
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef TCASIM_NONE
static inline void tcasim_cost_ns(uint64_t ns)
{
    (void)ns;
}
static inline int tcasim_simulated(void)
{
    return 0;
}
#else
// The calling thread computes for this time: a program's own work takes no simulated time unless it calls this.
void tcasim_cost_ns(uint64_t ns);
// 1: the program runs in simulated time.
int tcasim_simulated(void);
#endif

#ifdef __cplusplus
}
#endif
