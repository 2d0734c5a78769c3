// What the files of this room share: the simulation's struct, and the functions between the files. No other room
// includes this.
//
// Path of an event: queue.c holds it (in near.h or far.c), loop.c decides when it runs, bridge.cpp asks SystemC to call
// loop.c again at that time. A thread's wake is such an event too; thread.c has the condition it waits for, bridge.cpp
// owns its coroutine.
#pragma once

#include "sim/kernel/cause.h"
#include "sim/kernel/counter.h"
#include "sim/kernel/sim.h"
#include "sim/kernel/thread.h"
#include "sim/kernel/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- the queue: pending events in the order (due_ps, order) ----------------------------------------------------------
//
// Nearly all events are due within a microsecond: those are in a ring of buckets (near.h), where adding and removing
// cost a few instructions, whatever their number. The others are in a heap (far.c) and stay there; the next event is
// the earlier of the first events of the two levels.

struct sim_queue_key {
    uint64_t due_ps, order;
};

// An event's order: its rank, then the number of its scheduling call. Ranks: 0 for evaluate events, then one for each thread
// that takes turns, then those that let others run first, then one for each update event.
enum { SIM_SEQUENCE_BITS = 44, SIM_RANK_UPDATE = 1 << 19, SIM_RANK_YIELD = SIM_RANK_UPDATE - 1 };

static inline struct sim_queue_key sim_queue_key_of(const sim_event_t *event)
{
    return (struct sim_queue_key){event->due_ps, event->order};
}

static inline bool sim_queue_before(struct sim_queue_key a, struct sim_queue_key b)
{
    // As one number: the order of events at one instant is often unpredictable for the branch predictor.
    __extension__ typedef unsigned __int128 number;
    return ((number)a.due_ps << 64 | a.order) < ((number)b.due_ps << 64 | b.order);
}

enum { SIM_NEAR_SHIFT = 10, SIM_NEAR_BUCKETS = 2048, SIM_NEAR_WORDS = SIM_NEAR_BUCKETS / 64 };

// A bucket covers SIM_NEAR_SHIFT bits of picoseconds and is sorted.
struct sim_near {
    struct sim_near_bucket {
        sim_event_t *first, *last;
        struct sim_queue_key key; // of the last, so that most additions read no other event; 0: it is empty
    } buckets[SIM_NEAR_BUCKETS];
    uint64_t filled[SIM_NEAR_WORDS]; // one bit for each bucket that is not empty
    uint64_t filled_words;           // one bit for each word of `filled` that is not 0
};

// The key is stored with the pointer, so that a comparison accesses only the heap's own cache lines.
struct sim_far_entry {
    struct sim_queue_key key;
    sim_event_t *event;
};

struct sim_far {
    struct sim_far_entry *entries;
    uint32_t count;
    uint32_t capacity;
};

void sim_far_add(struct sim_far *far, sim_event_t *event);
void sim_far_remove(struct sim_far *far, sim_event_t *event);
void sim_far_fini(struct sim_far *far);

struct sim_queue {
    sim_event_t *first;  // the next event; NULL: the queue is empty
    uint64_t far_due_ps; // of the far level's first; SIM_NEVER_PS: it is empty
    struct sim_far far;
    struct sim_near near;
};

static inline void sim_queue_init(struct sim_queue *queue)
{
    queue->far_due_ps = SIM_NEVER_PS;
}

// Removes the first event. Precondition: the queue is not empty.
void sim_queue_pop(struct sim_queue *queue);
void sim_queue_fini(struct sim_queue *queue);

// --- the simulation --------------------------------------------------------------------------------------------------

struct sim_counter_table;

struct sim_counters {
    struct sim_counter_table *first, *last; // in the order of registration
    void *by_component, *by_values;         // trees
};

struct sim {
    struct sim_config config;

    // Time. now_ps may be ahead of SystemC's clock within a turn, see sim_loop_turn.
    uint64_t now_ps;
    uint64_t horizon_ps;  // time may move up to here, within the limits of the run; 0 once a stop is requested
    uint64_t progress_ps; // time of the last progress
    uint64_t epoch_ps;    // SystemC's time at sim_create
    uint64_t systemc_ps;  // SystemC's time in this turn, counted from the epoch
    uint64_t busy_ps;     // when SystemC has an event of its own, as of the beginning of this turn
    uint64_t quick_ps;    // earlier events need neither SystemC nor a check of limits
    uint64_t next_turn_ps;
    bool exact; // never ahead of SystemC's clock

    struct sim_queue queue;
    uint64_t sequence;
    void *names;               // a tree, for sim_name_keep
    struct sim_causes *causes; // NULL: not recorded
    sim_cause_t cause;         // of what runs now; 0: not recorded
    uint32_t late_events;      // number of initialised update events
    uint64_t events_run;
    void (*poll)(void *ctx); // NULL: none
    void *poll_ctx;
    uint64_t instant_events; // run since time last moved

    bool running;   // inside sim_run or the unwinding of sim_destroy
    bool stopping;  // sim_stop was called
    bool unwinding; // sim_destroy: threads end without running program code
    enum sim_run_outcome outcome;

    // Threads that have not ended, in the order of spawning.
    struct sim_thread *oldest, *newest;
    struct sim_thread *current; // the one that runs now
    unsigned thread_count;
    uint32_t threads_spawned;
    uint32_t rank; // of the event that runs

    struct sim_counters counters;
    sim_trace_sink_fn trace_sink;
    void *trace_ctx;
    uint32_t trace_count; // records of the trace that have a number
};

void sim_counters_fini(sim_t *sim);
void sim_names_fini(sim_t *sim);
void sim_causes_fini(sim_t *sim);
// Adds a record, while causes are recorded.
sim_cause_t sim_cause_add(sim_t *sim, sim_cause_t from, uint64_t end_ps, const char *component,
                          const struct sim_work *work);
// While causes are recorded: a record of a trace is at this cause; the nearest one at or before it, 0: none.
void sim_cause_number(sim_t *sim, sim_cause_t cause, uint32_t number);
uint32_t sim_cause_numbered(sim_t *sim, sim_cause_t cause);

// Nanoseconds, with picoseconds after the point if there are any: "12", "12.345". Returns buffer.
enum { SIM_NS_TEXT_BYTES = 32 };
const char *sim_format_ns(char buffer[SIM_NS_TEXT_BYTES], uint64_t time_ps);

// --- the loop --------------------------------------------------------------------------------------------------------

enum sim_turn {
    SIM_TURN_THREAD, // a thread was resumed; it requests the next turn when it blocks
    SIM_TURN_LATER,  // the next turn is due at sim->next_turn_ps
    SIM_TURN_OVER    // sim->outcome is set, or all threads are unwound
};

// Runs due events, in order, as far as possible without SystemC. systemc_ps is SystemC's time counted from the epoch.
enum sim_turn sim_loop_turn(sim_t *sim, uint64_t systemc_ps);
void sim_loop_begin(sim_t *sim);

// --- interface of the threads to the loop ----------------------------------------------------------------------------

// The function of every thread's wake event; the loop recognises thread wakes by it.
void sim_thread_wake(void *thread);
// Lets the oldest thread unwind. Returns false when no thread that ever ran is left.
bool sim_thread_unwind_next(sim_t *sim);

// --- coroutines and SystemC's clock (bridge.cpp) ---------------------------------------------------------------------

struct sim_coroutine;

// Called in a turn: the coroutine runs after the turn has ended. body must call sim_coroutine_end last.
struct sim_coroutine *sim_coroutine_start(void (*body)(void *arg), void *arg);
void sim_coroutine_resume(struct sim_coroutine *coroutine);
// Called in the coroutine: requests a turn and returns after the next resume.
void sim_coroutine_suspend(struct sim_coroutine *coroutine);
void sim_coroutine_end(struct sim_coroutine *coroutine);

// Time of the next event of SystemC's own, counted from the epoch; 0: at once, SIM_NEVER_PS: none.
uint64_t sim_bridge_busy_ps(const sim_t *sim);
// Runs turns until one returns SIM_TURN_OVER.
void sim_bridge_run(sim_t *sim);
// Makes sim (NULL: none) the live simulation and stores SystemC's time as its epoch.
void sim_bridge_adopt(sim_t *sim);
sim_t *sim_bridge_living(void);

#ifdef __cplusplus
}
#endif
