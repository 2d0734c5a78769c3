// Declared counters: the only source of numbers in results, except the measurements of a workload.
//
// A component declares a static table (name, unit, doc), embeds an array of uint64_t of the same length, registers both
// once and then simply increments the array. Values are read in the order of registration.
#pragma once

#include "sim/kernel/sim.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sim_counter_desc {
    const char *name; // lower_case_with_underscores
    const char *unit; // "TLPs", "bytes", "ps", ...
    const char *doc;
};

// component is copied; descs must be static; values must live until sim_destroy or sim_counters_unregister. EXISTS: the
// component has a counter of one of these names, or the values are registered already.
enum sim_status sim_counters_register(sim_t *sim, const char *component, const struct sim_counter_desc *descs,
                                      const uint64_t *values, unsigned count);
void sim_counters_unregister(sim_t *sim, const uint64_t *values);

typedef void (*sim_counter_visit_fn)(void *ctx, const char *component, const struct sim_counter_desc *desc,
                                     uint64_t value);
void sim_counters_visit(const sim_t *sim, sim_counter_visit_fn visit, void *ctx);
// Value of "component", "name"; 0 and *found_out = false when there is none. found_out may be NULL.
uint64_t sim_counter_value(const sim_t *sim, const char *component, const char *name, bool *found_out);

#ifdef __cplusplus
}
#endif
