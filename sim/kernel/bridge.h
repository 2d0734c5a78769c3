// For rooms that own SystemC objects (sim/cosim). Other rooms do not need it.
//
// While SystemC has no event of its own, the simulation runs ahead of SystemC's clock: in an event or a thread
// sc_time_stamp() may then be behind sim_now_ps(). C code does not see this, and it saves most of the scheduler's cost,
// but a signal written or an sc_event notified there would be handled at the older time.
#pragma once

#include "sim/kernel/sim.h"

#ifdef __cplusplus
extern "C" {
#endif

// From now until sim_destroy, SystemC's clock equals the simulation's in every event and every thread, and
// sim_try_advance refuses. Results are the same; the simulation is slower. Call outside sim_run.
void sim_bridge_keep_exact(sim_t *sim);

#ifdef __cplusplus
}
#endif
