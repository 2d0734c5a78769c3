/// @file
/// For programs that know that they may run in simulated time. On a real machine, and in a run without simulated time,
/// these functions do nothing: link with libtcasim.so, or with no library (define TCASIM_NONE before the include). No
/// function fails.
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
/// The calling thread computes for a time: a program's own work takes no simulated time unless it calls this.
/// @param ns nanoseconds of simulated time
void tcasim_cost_ns(uint64_t ns);
/// Asks whether the program runs in simulated time.
/// @retval 1 it does
/// @retval 0 a real machine, a run without simulated time, or TCASIM_NONE
int tcasim_simulated(void);
#endif

#ifdef __cplusplus
}
#endif
