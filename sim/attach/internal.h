// What the files of the room share.
#pragma once

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "models/host/core.h"
#include "sim/adversary/adversary.h"
#include "sim/attach/attach_run.h"
#include "sim/attach/waiting.h"
#include "sim/observe/observe.h"
#include "sim/platform/backend_inproc.h"
#include "sim/platform/machine.h"
#include "verbs-shim/attach/attach.h"
#include "verbs-shim/attach/protocol.h"

// Something that the process has in a kernel driver. number: as the driver calls it; of a pin its offset.
struct attach_object {
    enum attach_object_kind kind;
    uint32_t gpu;
    uint64_t number;
    uint64_t bus_address, bytes; // of memory and pins
    uint64_t *pages;             // of a region of the program's own memory, pinned for it; NULL: it needs none
    uint64_t va, va_bytes;       // of such a region
    bool open;                   // others may write to it without a word to its process
    int dull;                    // how many writes to it led to nothing, less what did (poll.c)
};

struct attach_memory;

// The run's number of a process, and the machine's; 0: it is over, and another process has that.
struct attach_id {
    uint32_t id;
    pid_t pid;
};

// Of a thread, not told to the observer yet, by enum observe_wait.
struct attach_waits {
    uint64_t count[OBSERVE_WAITS], ps[OBSERVE_WAITS];
};

struct attach_thread {
    struct attach_process *process;
    uint32_t index, id; // id: the run's number of it
    struct attach_slot *slot;
    char name[96];
    uint32_t bell;
    uint64_t awake_ms;  // real time, when it was last seen to run in this turn; 0: nobody has looked
    bool rung;          // when it got its turn, nobody looked
    uint64_t announces; // the child that it is about to tell of; 0: none
    host_core_t *core;
    struct plat_backend_inproc backend;
    sim_condition_t woken;
    struct attach_futex futex;
    int watches[ATTACH_WATCHES_MAX]; // copies of what it waits for
    uint16_t watch_events[ATTACH_WATCHES_MAX];
    unsigned watch_count;
    bool watch_ready;   // one of them is
    bool watch_blind;   // not all could be watched: it is asked whenever anything may have changed
    unsigned waits_for; // enum attach_wait_flags while it waits
    uint64_t waits_until_ps;
    bool blocked_outside; // on an external event, without polling
    bool free;    // functional: its program runs
    uint64_t seen_writes, seen_turns, seen_wakes, seen_ends, seen_event_writes; // when it last got its turn
    uint64_t waited_writes; // when it got it after a wait for memory
    uint64_t waited_pinned_writes;
    struct attach_loop loop; // of empty polls
    struct attach_shared shared;
    uint64_t ahead_ps;    // its own time is so much before the simulated one
    const char *asks_for; // since its last crossing; NULL: it made none yet
    uint64_t asked_ps;
    uint64_t turn_ps; // when it got its turn
    struct attach_waits waits;
    bool repeats; // its library only sends again what a peer is not ready for, or refuses that
    bool endless; // nothing but a device or another program ends what it asks for
    bool polls;   // it asks again and again, since asked_ps
    bool exits;   // it has said so, and waits for nothing
};

struct attach_process {
    struct attach_server *server;
    struct attach_process *next;
    uint32_t node, number;
    uint32_t id;    // the run's number of it
    uint32_t image; // the how manieth program of the process it is, from 1 on
    pid_t pid;
    char name[48]; // of what it runs
    int pidfd, socket;
    int program; // of the options; -1: a child of one
    struct attach_segment *segment;
    struct attach_thread *threads[ATTACH_SLOTS];
    unsigned thread_count;
    unsigned slots; // in use so far
    uint32_t first_bell;
    unsigned announced; // threads that begin when the time of who created them has come there
    bool expected;      // its parent said that it comes, or the run started it
    bool leaving;       // it said that it ends, or becomes another program
    bool ended;
    uint64_t alarm_ps; // no wait goes beyond
    struct attach_object *objects;
    size_t object_count, object_room;
    struct host_watch watch;
    struct host_owner owner; // of memory that is not pinned
    unsigned open_regions;   // objects that are
    size_t region_last;      // of the objects: the region that was written last
    uint64_t writes;         // of devices to its memory, but for quiet ones
    uint64_t pinned_writes;  // of these the ones to pinned memory
    uint64_t turns;          // of its threads, and of processes that share memory with it
    uint64_t event_writes;   // and to between the first and the last of its event queues, or where they are news
    uint64_t events_from, events_to;
    struct attach_ranges quiet;   // where writes wake nobody, but for who polls the very word
    struct attach_ranges news;    // and where they are events
    struct attach_memory *memory; // pages that are kept; NULL: none yet
    observe_process_t *observed;
};

// How a process ended that was killed, that left queue pairs, or a program with another status than 0.
struct attach_end {
    char name[48];
    uint32_t node;
    pid_t pid;
    int program, status; // as of wait(2); -1: its parent was faster
    bool left_pairs;
    uint64_t at_ps;
};
#define ATTACH_ENDS 16 // the first ones

// Where the simulator and the programs run.
struct attach_processors {
    cpu_set_t before, others; // the simulator's: at first, and while apart
    int of_programs;          // -1: nothing is chosen
    uint32_t looks;           // that a side makes before it sleeps; 0: there is one processor
    bool apart;
    unsigned turns, late; // of this window, or since they are together
    unsigned together;    // for so many turns
    unsigned good;        // windows in a row
};

// Later than this is never.
#define ATTACH_LAST_PS (UINT64_C(1) << 62)

#define ATTACH_EARLY_MAX 64u
struct attach_early {
    int socket;
    pid_t pid;
};

// Crossings of programs that only wait, poll, sleep and read clocks.
struct attach_still {
    uint64_t crossings, sleeps, since_ps; // since anything else happened; sleeps: waits that end at a time
    uint64_t untold, since_ms; // since a program told another one something as well; real time, of the first few
};

struct attach_server {
    const struct scn_scenario *scenario;
    const struct attach_run_options *options;
    struct attach_run_result *result;
    plat_machine_t *machine;
    adversary_t *adversary; // NULL: none
    sim_t *sim;
    char directory[64], path[96];
    struct attach_processors processors;
    struct attach_bells *bells;
    int bells_fd;
    uint32_t bells_given;
    int listener;
    struct attach_early early[ATTACH_EARLY_MAX]; // who has connected before its parent's time came
    unsigned early_count;
    int alive;             // a pipe that nobody writes to: its end is that of the simulator
    int network;           // holds the number of the nodes' addresses
    uint32_t address_base; // of node 0, host byte order
    struct attach_process *processes;
    const struct attach_process *board_owners[SCN_NODES_MAX]; // NULL: it is nobody's
    unsigned node_processes[SCN_NODES_MAX];                   // alive
    uint32_t numbers[SCN_NODES_MAX];                          // given to processes so far
    pid_t pids[ATTACH_RUN_PROGRAMS_MAX];                      // of programs; 0: not started, or reaped
    sim_condition_t process_ended;
    uint32_t started;       // programs
    sim_condition_t quiet;  // all wait for the outside, or another program was started
    struct rlimit files;    // descriptors that programs may have
    int watches;            // all of what threads wait for (epoll)
    uint64_t futex_order;   // of the waiter that came last
    uint64_t wakes;         // calls of attach_may_wake, and ends of processes
    uint64_t end_wakes;     // of these, ends of processes and signals
    uint64_t settled_wakes; // of which the waiters were asked twice
    uint64_t settled_ends;
    sim_event_t settle; // late: at the end of an instant, before time goes on
    unsigned idle_asks; // at this time, while nothing but a deadline was due
    uint64_t idle_at_ps;
    uint64_t idle_since_ms; // real time; 0: somebody has work
    sim_event_t pace;       // functional: simulated time is at the real one
    uint64_t heard;         // functional: crossings, when they last were other than before,
    uint64_t heard_ms;      // and when that was, in real time
    struct attach_still still;
    struct attach_end bad_ends[ATTACH_ENDS];
    unsigned end_count;
    bool ended_badly; // one has
    bool left;        // attach_leave was called
    bool stopped;
    struct attach_id *ids; // of all processes so far
    size_t id_count, id_room;
    uint32_t ids_taken; // by processes and threads
    observe_t *observe;
    bool notes_all; // somebody wants to know of every call
    FILE *crossings; // one a line; NULL: nobody asked
};

// What a program asks for, copied out of its reach.
struct attach_request {
    uint32_t op;
    uint32_t entry_count;
    uint64_t tail_ps;
    uint64_t own_ps; // all that the thread spent since its last crossing
    union attach_args args;
};

uint64_t attach_real_ms(void);
// Ends the run: the text is what the user reads. The first one stays.
__attribute__((format(printf, 2, 3))) void attach_fail(struct attach_server *server, const char *format, ...);
bool attach_stopped(struct attach_server *server);
// Notes what another run may do otherwise; bits of enum attach_run_outside.
void attach_outside_note(struct attach_server *server, unsigned what);
void attach_leave(struct attach_server *server); // ends the run well: what is left are daemons

// --- listen.c -------------------------------------------------------------------------------------------------------

bool attach_listen(struct attach_server *server);
void attach_listen_end(struct attach_server *server);
// Takes everybody who has connected, but for children of whom a thread is about to tell: they begin at its time.
void attach_accept(struct attach_server *server);
// Sends a descriptor to a process.
bool attach_descriptor_send(const struct attach_process *process, int fd);
int attach_sealed_memory(uint64_t bytes); // request.c: a file of memory whose size stays; -1
// effect.c: of work, as the program gave it. false: it has none to give, or there is no memory.
bool attach_effect_set(const struct attach_process *process, uint32_t gpu, struct backend_gpu_work *work);

// --- sysfs.c --------------------------------------------------------------------------------------------------------

#define ATTACH_SYSFS_BYTES 160
// The nodes' folders in the run's directory. false: the reason is in the result.
bool attach_sysfs_make(struct attach_server *server);
void attach_sysfs_path(const struct attach_server *server, uint32_t node, char *path_out, size_t bytes);
void attach_folder_remove(const char *path); // and all that is in it

// --- scratch.c ------------------------------------------------------------------------------------------------------

void attach_scratch_path(const struct attach_server *server, char *path_out, size_t bytes);
// A link to options->library_directory, by a name that may stand in LD_PRELOAD whatever that directory is called.
void attach_libraries_path(const struct attach_server *server, char *path_out, size_t bytes);
bool attach_scratch_make(struct attach_server *server); // false: the reason is in the result
// The run's whole directory, and the shared memory of its nodes.
void attach_scratch_remove(const struct attach_server *server);

// --- launch.c -------------------------------------------------------------------------------------------------------

// From a node's thread: starts its programs, and returns when all processes of the node have ended. As people start
// programs, each begins when those before have come to a place where they wait for others (a server that listens), or
// after START_LATEST_PS.
void attach_node_main(void *arg, peach2_handle_t *board);
struct attach_node {
    struct attach_server *server;
    uint32_t node;
};
// Waits until the process has connected or ended. false: neither, in time.
bool attach_await(struct attach_server *server, pid_t pid);
pid_t attach_parent_of(pid_t pid); // 0: there is none
// Is it a child of the process?
bool attach_is_child(const struct attach_process *process, uint64_t pid);
// Is the process with this descriptor over?
bool attach_over(int pidfd);
// At the end: nothing that was started stays.
void attach_kill_all(struct attach_server *server);
// Notes how a program of the options ended.
void attach_reap(struct attach_server *server, int program);

// --- timestamps.c ---------------------------------------------------------------------------------------------------

void attach_timestamps_begin(void);
void attach_timestamps_end(void);
void attach_timestamps_trap(bool on); // of the calling thread, and of what it forks

// --- refuse.c -------------------------------------------------------------------------------------------------------

#define ATTACH_PATH_BYTES 4096
// Why it cannot be attached; NULL: it can, as far as its file tells.
const char *attach_refused(const char *program, bool functional);

// --- process.c ------------------------------------------------------------------------------------------------------

// NULL: no memory. Takes socket and pidfd.
struct attach_process *attach_process_create(struct attach_server *server, uint32_t node, pid_t pid, int pidfd,
                                             int socket);
// The descriptor of its segment, to be sent and closed; -1.
int attach_process_segment(struct attach_process *process);
// It is gone: its threads are told, and the last of them destroys what it had.
void attach_process_ended(struct attach_process *process);
// It has ended, its last thread has, and nothing is left of what it had: as of a real kernel, others learn it now.
void attach_process_forget(struct attach_process *process);
void attach_process_destroy(struct attach_process *process);
void attach_processes_check(struct attach_server *server); // has one ended?

int attach_object_add(struct attach_process *process, const struct attach_object *object);
// NULL: it has no such.
struct attach_object *attach_object_find(const struct attach_process *process, enum attach_object_kind kind,
                                         uint32_t gpu, uint64_t number);
void attach_object_remove(struct attach_process *process, struct attach_object *object);
// Is all of the range memory of the process that devices may reach?
bool attach_memory_owned(const struct attach_process *process, uint64_t bus_address, uint64_t bytes);
bool attach_pinned_owned(const struct attach_process *process, uint64_t bus_address, uint64_t bytes); // not a GPU's

// --- ids.c ----------------------------------------------------------------------------------------------------------

uint32_t attach_ids_take(struct attach_server *server);
bool attach_ids_note(struct attach_server *server, uint32_t id, pid_t pid); // false: no memory
// The run's number of a process of the machine. -ESRCH: none.
int64_t attach_ids_of(const struct attach_server *server, uint64_t pid);
// The machine's number of a process of the run, or of a thread of the process that asks. -ESRCH: none.
int64_t attach_ids_real(const struct attach_process *process, uint64_t id);

// --- thread.c -------------------------------------------------------------------------------------------------------

// Starts a simulated thread for a slot. false: no memory.
bool attach_thread_start(struct attach_process *process, uint32_t index);
void attach_thread_destroy(struct attach_thread *thread);
void attach_preempt(struct attach_thread *thread, enum adversary_purpose purpose); // perhaps, for a while
// Those that have taken a slot. announced: by their creator, who waits for them.
void attach_threads_find(struct attach_server *server, bool announced);
// The next of all, in their order. Begins with NULL and 0; NULL: none is left.
struct attach_thread *attach_thread_next(const struct attach_server *server, struct attach_process **process,
                                         unsigned *index);
void attach_hash(struct attach_server *server, uint64_t value);

// --- notes.c --------------------------------------------------------------------------------------------------------

// The records of a turn, and how many of them were taken. entries_ps: when the work before each entry of the list
// began.
struct attach_notes {
    uint32_t count, taken;
    uint64_t entries_ps[ATTACH_ENTRIES + 1];
};
// false: there are none.
bool attach_notes_begin(const struct attach_thread *thread, struct attach_notes *notes);
// The thread is where the work before that entry begins.
void attach_notes_entry(const struct attach_thread *thread, struct attach_notes *notes, uint32_t entry);
// The next of those that were written before that entry of the list.
bool attach_notes_next(struct attach_thread *thread, struct attach_notes *notes, uint32_t entry,
                       struct attach_note *note_out);
// left_ps: own work up to the note for which the thread has not paid yet.
void attach_note_take(struct attach_thread *thread, const struct attach_notes *notes, const struct attach_note *note,
                      uint64_t left_ps);
void attach_notes_end(struct attach_thread *thread);
// What the thread waited for the answer to a request.
void attach_notes_waited(struct attach_thread *thread, const struct attach_request *request, uint64_t ps);
void attach_notes_over(struct attach_thread *thread); // the thread ends

// --- ask.c ----------------------------------------------------------------------------------------------------------

// How the queues of a process stand; the caller frees them. NULL: it cannot be asked now.
struct journal_state *attach_ask(struct attach_process *process, unsigned *count_out);
bool attach_receives(void *server, void *process, uint32_t qp, struct observe_receives *receives_out); // for observe

// --- ends.c ---------------------------------------------------------------------------------------------------------

// A file of /proc/<pid>, as text. Returns how much of it; -1: there is none.
ssize_t attach_proc_read(pid_t pid, const char *name, char *text_out, size_t bytes);
char attach_state(pid_t pid, pid_t tid); // proc(5), /proc/<pid>/stat; 'X': it is gone
// Does the thread compute, or wait for a disk? Not where it sleeps, or is gone.
bool attach_runs(pid_t pid, pid_t tid);
void attach_name_read(struct attach_process *process);
// It is over, and not reaped.
void attach_end_note(struct attach_process *process);
void attach_start_failed(struct attach_server *server, uint32_t program, pid_t pid);
void attach_ends_tell(struct attach_server *server, bool all); // into the result
// What all wait for, where they are, how their queues stand: for the user. Before attach_fail, which ends everything.
void attach_waiters_print(struct attach_server *server, char *text, size_t room);
void attach_thread_title(const struct attach_thread *thread, char *text, size_t room);

// --- limits.c -------------------------------------------------------------------------------------------------------

// What a thread asks for is noted, and whether the run leads nowhere.
void attach_crossing_note(struct attach_thread *thread, const struct attach_request *request);
bool attach_programs_over(const struct attach_server *server); // those of the options
// Something was done, or came from a device; a program was told something by another one, or found it.
void attach_progress_note(struct attach_server *server);
void attach_told_note(struct attach_server *server);
// While devices move and no program has a turn.
void attach_devices_look(void *server);
// How long all may wait for the outside, with nothing due.
uint64_t attach_idle_limit_ms(const struct attach_server *server);
// --- where.c --------------------------------------------------------------------------------------------------------

// The functions in which the thread is: "spin (a.out), called by main (a.out)". false: it is not to be found.
bool attach_where(pid_t pid, pid_t tid, char *text, size_t room);
// The same of addresses in its process, from a call inwards out; for observe.
bool attach_symbols(void *ctx, void *process, const uint64_t *places, unsigned count, char *text, size_t room);

// --- turn.c ---------------------------------------------------------------------------------------------------------

bool attach_turns_init(struct attach_server *server);
void attach_turns_fini(struct attach_server *server);
void attach_processors_of_programs(const struct attach_server *server); // of the caller from now on, and what it forks
// On which they may be, as far as they can tell: those that the simulator had itself.
void attach_processors_tell(const struct attach_server *server, unsigned char set_out[128]);
void attach_turn_give(struct attach_thread *thread);
bool attach_turn_await(struct attach_thread *thread); // false: the program has ended
bool attach_turn_is_program(const struct attach_thread *thread);

// --- memory.c --------------------------------------------------------------------------------------------------------

extern const struct host_owner_ops attach_memory_ops; // of a process: its memory, by process_vm_readv and writev
// Before a program of the node runs, or the simulator writes to one's memory itself: what devices wrote is there.
void attach_memory_settle(const struct attach_server *server, uint32_t node);
void attach_memory_destroy(struct attach_memory *memory);

// --- functional.c ---------------------------------------------------------------------------------------------------

// The run without simulated time: programs run freely, and simulated time follows the real one.
enum sim_run_outcome attach_functional_run(struct attach_server *server);
// The thread's program has its turn until it asks for something. false: it has ended.
bool attach_functional_await(struct attach_thread *thread);

// --- request_table.c ------------------------------------------------------------------------------------------------

const char *attach_op_name(uint32_t op);
// The arguments of a request, copied out of the program's reach.
void attach_args_take(union attach_args *args, uint32_t op, const struct attach_slot *slot);
// Checks and carries out one request. The reply goes to the slot.
int64_t attach_request_do(struct attach_thread *thread, const struct attach_request *request);
// A line of the run's file of crossings, before the request is carried out. Two runs of the same programs are the same
// where their files are, and the first line that differs is where to look.
void attach_crossing_write(FILE *file, const struct attach_thread *thread, const struct attach_request *request);

// --- request.c, request_gpu.c, request_hca.c, poll.c, futex.c -------------------------------------------------------

// Serves a request, whose fields hold what the table says. reply is all zero at first.
#define REQUEST(ID, name, ARGUMENTS, REPLY)                                                                            \
    int64_t attach_serve_##name(struct attach_thread *thread, const struct attach_args_##name *args,                   \
                                struct attach_reply_##name *reply_out);
#include "verbs-shim/attach/requests.def"
#undef REQUEST

int attach_hca_object_destroy(struct attach_thread *thread, const struct attach_object *object);
bool attach_bar_allowed(const struct attach_process *process, uint64_t bar, uint64_t offset, uint64_t bytes);
// In its driver; returns the driver's status. To be removed from the process's list by the caller.
int attach_object_destroy(struct attach_thread *thread, const struct attach_object *object);
// An object that a driver has just made belongs to the process, or, when its list is full, is gone again.
int64_t attach_object_keep(struct attach_thread *thread, const struct attach_object *object);
// Destroys one that the process asks to have destroyed. -EINVAL: it has no such.
int64_t attach_object_release(struct attach_thread *thread, enum attach_object_kind kind, uint32_t gpu,
                              uint64_t number);
