// Trace events as Perfetto and chrome://tracing read them ("Trace Event Format", JSON): slices on lanes, flows between
// slices, counters. Each process is a node of a series, each thread a component. The slices of a thread do not overlap, as
// the format wants it: where those of a component do, further threads take them.
//
// Events may be added in any order; the file has them in the order of time. Times are picoseconds, in the file
// microseconds with six decimals, so none is rounded.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "sim/kernel/status.h"

typedef struct events events_t;
typedef uint32_t events_slice_t; // the number of a slice, from 0

enum sim_status events_create(events_t **events_out);
void events_destroy(events_t *events);

// The lane of a component; texts are copied. process: "exec: node0".
uint32_t events_lane(events_t *events, const char *process, const char *component);

const char *events_lane_component(const events_t *events, uint32_t lane);

struct events_slice {
    uint32_t lane;
    uint64_t begin_ps, end_ps;
    const char *name, *category; // copied
    const char *args;            // a JSON object, copied; NULL: none
};
events_slice_t events_slice_add(events_t *events, const struct events_slice *slice);

// The second slice follows from the first, which must not begin after the second ends.
void events_flow_add(events_t *events, events_slice_t from, events_slice_t to);
// A flow through slices that follow one another.
void events_chain_add(events_t *events, events_slice_t first, uint32_t count);

// A counter of the lane's process has a value from at_ps on. name: copied; unit: of the value, static.
void events_counter_add(events_t *events, uint32_t lane, uint64_t at_ps, const char *name, const char *unit,
                        uint64_t value);

// SIM_ERR_NO_MEMORY: there was no memory for an event, or none now.
enum sim_status events_write(events_t *events, FILE *out);

// The node of a component is the part before its first dot; for end 1 of a cable "node0.E-node1.W.1" it is node1.
void events_node_find(const char *component, char *node, size_t room);
