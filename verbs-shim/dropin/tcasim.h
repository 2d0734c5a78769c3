// For programs that know that they may run in simulated time. On a real machine, and in a run without simulated time, all
// of this does nothing: link with libtcasim.so, or with nothing at all (define TCASIM_NONE before the include).
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
// The calling thread computes for so long: a program's own work takes no simulated time unless it says so.
void tcasim_cost_ns(uint64_t ns);
// Does the program run in simulated time?
int tcasim_simulated(void);
#endif

#ifdef __cplusplus
}
#endif
