// Runs outside programs on the nodes of a scenario, in simulated time: the simulator's side of verbs-shim/attach.
//
// Every thread of an attached process has a simulated thread with a simulated core of the process's node. The simulated
// thread gives the run token to the program, waits in real time until the program makes an attach call, lets the
// program's own time pass, carries out the stores that the program listed at their times, and then carries out the
// request (docs/decisions/0011-attached-programs.md). Nothing that comes from a program is trusted: numbers, addresses
// and lengths are checked against what the process owns. All that a process owns is destroyed when it ends, however it
// ends.
//
// Leaves out: protection against what the registers of a board let any program do, as on the real machine: DMA to any
// address of the window.
#pragma once

#include "sim/observe/observe.h"
#include "sim/platform/platform.h"
#include "sim/scenario/scenario.h"

struct attach_program {
    uint32_t node;
    char *const *argv;                    // [0] is searched in PATH
    char *const *env;                     // "NAME=VALUE", in addition to the simulator's own; NULL: none
    const char *stdin_path, *stdout_path; // NULL: the simulator's
    bool gpu_mpi;                         // its MPI takes device pointers (verbs-shim/mpi-gpu)
    bool serves;                          // is ended when all others have ended and it waits for more
};

struct attach_run_options {
    const struct attach_program *programs;
    uint32_t program_count;
    const char *library_directory; // for LD_LIBRARY_PATH; it also holds the libraries for LD_PRELOAD
    bool every_poll;               // no fast-forward of loops of polls
    bool functional;               // without simulated time
    bool together;                 // all programs start at once; else as attach_node_main says
    bool servers;                  // each program that waits for more when another one has ended serves
    bool any_cpu;                  // do not choose processors for simulator and programs
    bool adversarial;              // legal but unkind behaviour, drawn from the seed; not with functional
    uint64_t adversarial_seed;
    uint64_t wall_limit_ms;       // limit for a program without an attach call, and for all waiting for the outside
    uint64_t silence_limit_ms;    // functional: how long the run may go without an attach call; 0: without limit
    sim_counter_visit_fn counter; // after the run; may be NULL
    sim_trace_sink_fn trace;      // may be NULL
    bool trace_causes;            // its records name their causes
    void (*diagnosis)(void *ctx, const char *line); // refused calls and completions in error; NULL: not reported
    bool summary;                                   // counts of verbs calls
    bool check;                                     // mistakes that a real device cannot see, reported as diagnoses
    bool explain;                                   // critical paths of the operations that `select` names
    struct observe_selection select;
    void (*observed)(void *ctx, observe_t *observe); // after the run; may be NULL
    bool fingerprint;                                // the result tells of the machine
    const char *ipc_trace;                           // for the IPC trace, a line for each attach call; NULL: none
    void (*scheduled)(void *ctx); // timed runs: after each scheduling slot, its output is written; may be NULL
    void *ctx;
};

#define ATTACH_RUN_PROGRAMS_MAX 64

// Why another run may differ from this one, as far as the simulator notices. Bits of attach_run_result.outside.
enum attach_run_outside {
    ATTACH_RUN_OUTSIDE_THREAD = 1, // a thread attached that its creator had not announced
    ATTACH_RUN_OUTSIDE_CHILD = 2,  // a process attached that its parent had not announced
    ATTACH_RUN_OUTSIDE_EVENT = 4,  // a program waited for the outside, and something came from there
    ATTACH_RUN_OUTSIDE_CLOCK = 8,  // a limit of real time passed and decided when something happened in simulated time
    ATTACH_RUN_OUTSIDE_COMPUTE = 16, // processor time of this machine counts (nodes.*.host.compute)
    ATTACH_RUN_OUTSIDE_TIMER = 32    // a program set a timer of processor time, which is this machine's
};

struct attach_run_result {
    enum sim_run_outcome outcome;
    bool failed;                           // or stuck: text has the reason
    bool interrupted;                      // by a signal
    unsigned findings;                     // of checks
    unsigned outside;                      // of enum attach_run_outside; 0 without simulated time
    int statuses[ATTACH_RUN_PROGRAMS_MAX]; // as a shell reports them: 128 plus the number of the signal; of a server that was
                                           // ended with the others 0
    uint64_t simulated_ps, events, rtl_cycles, calls, hash;
    char text[16384];
    char machine[16384]; // with the fingerprint: lines of YAML, two spaces before each; may be cut
    // Threads of whose waits it was learned, not shown, that polls repeat, and how late one may have ended: lines of YAML; may be
    // cut. Empty: all waits are exact.
    char late[4096];
    char asked[1024]; // what programs asked for and their nodes have not, separated by ", "; may be cut
    char ends[2048]; // a line for each program that was killed; if the run did not end well, also a line for each
                     // program with another status than 0
};

// Other codes than SIM_OK: nothing was started, and text has the reason.
enum sim_status attach_run(const struct scn_scenario *scenario, const struct attach_run_options *options,
                           struct attach_run_result *result);

// Ends the current run; may be called from a signal handler.
void attach_run_interrupt(void);
