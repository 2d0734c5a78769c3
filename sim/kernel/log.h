// Log lines for people. Results never come from here.
#pragma once

#include "sim/kernel/sim.h"

#ifdef __cplusplus
extern "C" {
#endif

enum sim_log_level { SIM_LOG_ERROR, SIM_LOG_WARN, SIM_LOG_INFO, SIM_LOG_DEBUG };

typedef void (*sim_log_sink_fn)(void *ctx, enum sim_log_level level, const char *line);

// Lines at or below level go to sink as "<time> ns <component>: <text>"; default: WARN, to standard error.
void sim_log_set_sink(sim_t *sim, enum sim_log_level level, sim_log_sink_fn sink, void *ctx);
void sim_log(sim_t *sim, enum sim_log_level level, const char *component, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// How many lines of SIM_LOG_WARN or worse there were; a test fails on unexpected ones.
unsigned sim_log_warnings(const sim_t *sim);

#ifdef __cplusplus
}
#endif
