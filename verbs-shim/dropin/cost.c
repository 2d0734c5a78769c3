// libtcasim.so: an attached process has loaded libtcasim-attach.so, other processes have not.
#include "verbs-shim/dropin/tcasim.h"

#include <stddef.h>

#define PS_PER_NS 1000u

__attribute__((weak)) void attach_spend_ps(uint64_t ps);
__attribute__((weak)) int attach_mode(void); // enum attach_mode; 2: in simulated time

void tcasim_cost_ns(uint64_t ns)
{
    if (attach_spend_ps != NULL) {
        attach_spend_ps(ns < UINT64_MAX / PS_PER_NS ? ns * PS_PER_NS : UINT64_MAX);
    }
}

int tcasim_simulated(void)
{
    return attach_mode != NULL && attach_mode() == 2;
}
