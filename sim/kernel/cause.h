// Causes: why what happens now happens now, so that a latency can be opened into the pieces of its critical path.
//
// While causes are recorded, every event that runs and every stretch that a thread sleeps leaves a record: it ends now,
// it began when that which caused it ended, and the one that caused it is known by number. So the records that lead to
// an instant follow each other without gaps or overlaps, back to where recording began, whatever components they cross.
// What runs has a current cause; an event takes that of whoever scheduled it, a thread that wakes that of its waker.
//
// A component says what the time was spent on (sim_cause_label), and where things wait in a queue of its own that is
// served for another reason, it keeps the cause with the thing and goes on from it (sim_cause_follow). Without
// recording all of this is one branch and a number that is 0.
//
// Leaves out: what else was needed at the same time. Where two things had to be there, the one that came last counts.
#pragma once

#include <stddef.h>

#include "sim/kernel/sim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t sim_cause_t; // 0: not recorded, or the beginning of all

// What a stretch of time was spent on. Static.
struct sim_work {
    const char *part; // "PCIe": by it times are added up
    const char *what; // "serialisation"
    // Nothing but a mark on the path: from here on all counts to `part`, until the next mark; without a part that ends.
    bool is_mark;
};

// From now until sim_destroy; before the first run, or what is under way has no cause. Records that would take more
// than bytes_max (0: any number) end the run: as by sim_stop, with sim_causes_full.
void sim_causes_record(sim_t *sim, uint64_t bytes_max);
// The same, but only the last `count` records are kept (a power of two); the run goes on, and a path ends where its
// records are gone.
void sim_causes_record_last(sim_t *sim, uint32_t count);
bool sim_causes_full(const sim_t *sim);
bool sim_causes_recorded(const sim_t *sim);

sim_cause_t sim_cause_now(const sim_t *sim);
// In an event, or after a sleep: what the time that just ended was spent on. component lives as long as the simulation.
void sim_cause_label(sim_t *sim, const char *component, const struct sim_work *work);
// What happens now follows from that cause, and the time since then was spent on `work`.
void sim_cause_follow(sim_t *sim, sim_cause_t from, const char *component, const struct sim_work *work);
// A stretch that begins where `from` ends and lasts until to_ps, perhaps yet to come; `from` itself when that is over.
sim_cause_t sim_cause_extend(sim_t *sim, sim_cause_t from, uint64_t to_ps, const char *component,
                             const struct sim_work *work);
// The stretch that was extended ends now, and what happens follows from it.
void sim_cause_arrive(sim_t *sim, sim_cause_t cause);
// A place on the path that takes no time.
void sim_cause_mark(sim_t *sim, const char *component, const struct sim_work *mark);

// --- looking back ------------------------------------------------------------------------------------------------

// The calling thread read the clock. A program measures between two of its readings.
void sim_cause_clock_read(sim_t *sim);

struct sim_piece {
    const char *component;       // NULL: nobody labelled it
    const struct sim_work *work; // the same
    uint64_t begin_ps, end_ps;
};

// The critical path of what the calling thread measured last as total_ps: the pieces between the two readings of the
// clock, in order of time, each beginning where the one before ends. The caller frees *pieces_out. false: no two of its
// readings lie total_ps apart.
bool sim_cause_path(sim_t *sim, uint64_t total_ps, struct sim_piece **pieces_out, size_t *count_out);
// The critical path that leads to what happens now, from from_ps on: pieces as above, from there until now. false: the
// records do not reach back so far.
bool sim_cause_path_since(sim_t *sim, uint64_t from_ps, struct sim_piece **pieces_out, size_t *count_out);

#ifdef __cplusplus
}
#endif
