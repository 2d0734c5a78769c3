// Sets up an observer with two processes, and passes it records as programs would write them.
#pragma once

#include <stdio.h>

#include "sim/observe/observe.h"

struct fixture {
    sim_t *sim;
    observe_t *observe;
    observe_process_t *node0, *node1;
    char lines[16384];  // diagnoses and checks
    char traced[16384]; // "time component point field=value ..."
};

// The caller sets the options that are not about lines and traces.
void fixture_open(struct fixture *fixture, const struct observe_options *options);
void fixture_close(struct fixture *fixture);
// Passes a call that ended at that time.
void fixture_note(observe_process_t *process, uint64_t at_ps, const struct journal_record *record);
// Device, region of 4 KiB at 0x1000 with that key, completion queue 2 and queue pair 1, connected to queue pair 1 of
// the other LID, and ready.
void fixture_connect(observe_process_t *process, uint32_t lid, uint32_t other_lid, uint32_t key);
// Both processes to each other, with the keys 0x100 and 0x200.
void fixture_connect_both(const struct fixture *fixture);
// What `write` writes of the observer; until the next call.
const char *fixture_written(const struct fixture *fixture, void (*write)(const observe_t *observe, FILE *out));
// Passes a change of queue pair 1 to that state (enum ibv_qp_state).
void fixture_state_set(observe_process_t *process, uint64_t at_ps, uint32_t state);
