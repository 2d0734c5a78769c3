// Causes: the reasons for the time of each event, so that a latency can be split into the pieces of its critical path.
//
// While causes are recorded, every event that runs and every sleep of a thread leaves a record: the record ends now, it
// began when its cause ended, and it has the number of the record that caused it. So the records that lead to an
// instant follow each other without gaps or overlaps, back to the start of recording, through all components. The
// running code has a current cause; an event gets the cause of the code that scheduled it, a thread that wakes gets
// that of its waker.
//
// A component labels the time that was spent (sim_cause_label). If items wait in a queue of the component that is
// served for another reason, the component keeps the cause with the item and continues from it (sim_cause_follow).
// Without recording all of this is one branch and a number that is 0.
//
// Leaves out: conditions that were met earlier. If an action needs two conditions, the one that was met last counts.
#pragma once

#include <stddef.h>

#include "sim/kernel/sim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t sim_cause_t; // 0: not recorded, or the origin

// The purpose of a stretch of time. Static.
struct sim_work {
    const char *part; // "PCIe": times are added up by part
    const char *what; // "serialisation"
    // Only a mark on the path: from here on all time counts to `part`, until the next mark; a mark without a part ends
    // this.
    bool is_mark;
};

// Records from now until sim_destroy; call before the first run, because events already in progress have no cause. When
// the records would take more than bytes_max (0: no limit), the run ends as by sim_stop, with sim_causes_full.
void sim_causes_record(sim_t *sim, uint64_t bytes_max);
// The same, but only the last `count` records are kept (a power of two); the run continues, and a path ends where its
// records have been overwritten.
void sim_causes_record_last(sim_t *sim, uint32_t count);
#define SIM_CAUSES_LAST (1u << 22) // an ample count; 32 B each
bool sim_causes_full(const sim_t *sim);
bool sim_causes_recorded(const sim_t *sim);

sim_cause_t sim_cause_now(const sim_t *sim);
// In an event, or after a sleep: labels the time that just ended. component lives as long as the simulation.
void sim_cause_label(sim_t *sim, const char *component, const struct sim_work *work);
// The current action follows from that cause, and the time since then was spent on `work`.
void sim_cause_follow(sim_t *sim, sim_cause_t from, const char *component, const struct sim_work *work);
// A stretch that begins where `from` ends and lasts until to_ps, perhaps in the future; `from` itself if it ends later.
sim_cause_t sim_cause_extend(sim_t *sim, sim_cause_t from, uint64_t to_ps, const char *component,
                             const struct sim_work *work);
// The extended stretch ends now, and the current action follows from it.
void sim_cause_arrive(sim_t *sim, sim_cause_t cause);
// A point on the path that takes no time.
void sim_cause_mark(sim_t *sim, const char *component, const struct sim_work *mark);

// --- evaluation --------------------------------------------------------------------------------------------------

// The calling thread read the clock. A program measures between two of its readings.
void sim_cause_clock_read(sim_t *sim);

struct sim_piece {
    const char *component;       // NULL: no label
    const struct sim_work *work; // NULL: no label
    uint64_t begin_ps, end_ps;
};

// The critical path of the calling thread's last measurement of total_ps: the pieces between the two readings of the
// clock, in order of time, each beginning where the previous one ends. The caller frees *pieces_out. false: no two of
// the thread's readings are total_ps apart.
bool sim_cause_path(sim_t *sim, uint64_t total_ps, struct sim_piece **pieces_out, size_t *count_out);
// The critical path to the current action, from from_ps until now: pieces as above. false: the records do not reach
// back that far.
bool sim_cause_path_since(sim_t *sim, uint64_t from_ps, struct sim_piece **pieces_out, size_t *count_out);

#ifdef __cplusplus
}
#endif
