// Runs outside programs on the nodes of a scenario, in simulated time: the simulator's side of verbs-shim/attach.
//
// Every thread of an attached process has a simulated thread with a simulated core of the process's node. It gives the
// program its turn, waits for real until the program crosses, lets the program's own time pass, carries out the stores
// that it listed at their times, and then what it asked for (docs/decisions/0011-attached-programs.md). Nothing that
// comes from a program is believed: numbers, addresses and lengths are checked against what the process owns, and all
// of that is destroyed when it ends, however it ends.
//
// Leaves out: what a board's registers let any program do, as on the machine: DMA to any address of the window.
#pragma once

#include "sim/observe/observe.h"
#include "sim/platform/platform.h"
#include "sim/scenario/scenario.h"

struct attach_program {
    uint32_t node;
    char *const *argv;                    // [0] is looked up in PATH
    char *const *env;                     // "NAME=VALUE" over the simulator's own; NULL: none
    const char *stdin_path, *stdout_path; // NULL: the simulator's
    bool gpu_mpi;                         // its MPI takes device pointers (verbs-shim/mpi-gpu)
};

struct attach_run_options {
    const struct attach_program *programs;
    uint32_t program_count;
    const char *library_directory; // for LD_LIBRARY_PATH; what is to be preloaded lies there
    bool functional;               // without simulated time
    bool together;                 // all programs start at once; else see attach_node_main
    bool any_cpu;                  // do not keep simulator and programs on one processor
    bool adversarial;              // legal but unkind behaviour, drawn from the seed; not with functional
    uint64_t adversarial_seed;
    uint64_t wall_limit_ms;       // how long a program may run without calling in, and all may wait for the outside
    uint64_t silence_limit_ms;    // functional: how long nobody may call in; 0: for ever
    sim_counter_visit_fn counter; // after the run; may be NULL
    sim_trace_sink_fn trace;      // may be NULL
    void (*diagnosis)(void *ctx, const char *line); // refused calls and completions in error; NULL: nobody asks
    bool summary;                                   // counts of verbs calls
    bool check;                                     // mistakes that a real device cannot see, told as diagnoses are
    bool explain;                                   // critical paths of those that `select` says
    struct observe_selection select;
    void (*observed)(void *ctx, observe_t *observe); // after the run; may be NULL
    const char *ipc_trace;                           // a file to be written with a line for each attach call; NULL: none
    void (*scheduled)(void *ctx); // timed runs: after each scheduling slot, with what the program printed; may be NULL
    void *ctx;
};

#define ATTACH_RUN_PROGRAMS_MAX 64

// What makes a run one that another may differ from, as far as it is noticed. Bits of attach_run_result.outside.
enum attach_run_outside {
    ATTACH_RUN_OUTSIDE_THREAD = 1,  // a thread came in that its creator had not announced
    ATTACH_RUN_OUTSIDE_CHILD = 2,   // a process came in that its parent had not announced
    ATTACH_RUN_OUTSIDE_EVENT = 4,   // a program waited for somebody outside of the run, who did something
    ATTACH_RUN_OUTSIDE_CLOCK = 8,   // real time ran out for something, and said when it happened in simulated time
    ATTACH_RUN_OUTSIDE_COMPUTE = 16 // processor time of this machine counts (nodes.*.host.compute)
};

struct attach_run_result {
    enum sim_run_outcome outcome;
    bool failed;                           // or stuck: text says why
    bool interrupted;                      // by a signal
    unsigned findings;                     // of checks
    unsigned outside;                      // of enum attach_run_outside; 0 without simulated time
    int statuses[ATTACH_RUN_PROGRAMS_MAX]; // as a shell gives them: 128 and the signal's number
    uint64_t simulated_ps, events, rtl_cycles, calls, hash;
    char text[16384];
    char ends[2048]; // a line for each program that was killed; of a run that did not end well for each with another
                     // status than 0 as well
};

// Other codes than SIM_OK: nothing was started, the reason is in text.
enum sim_status attach_run(const struct scn_scenario *scenario, const struct attach_run_options *options,
                           struct attach_run_result *result);

// Ends the run that is under way; from a signal handler.
void attach_run_interrupt(void);
