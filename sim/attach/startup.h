// How a run begins: its directory, its socket, which processes may attach, its programs, and the numbers that processes
// and threads get. Part of internal.h, for the files of the room.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "sim/attach/attach_run.h"
#include "sim/attach/reach.h"
#include "sim/kernel/sim.h"
#include "sim/scenario/scenario.h"
#include "verbs-shim/peach2/peach2_driver.h"

struct attach_process;
struct attach_server;

// The run's directory.
struct attach_scratch {
    char directory[64];
    char path[96];  // of the socket
    char files[96]; // where the nodes' files are: in memory, where that is possible
    int alive;      // a pipe without a writer: it ends with the simulator
    pid_t janitor;  // waits for that; 0: it could not be started
};

// A process that has connected before its parent's time has come, or has not said hello.
#define ATTACH_EARLY_MAX 256u
struct attach_early {
    int socket;
    struct attach_reach reach;
};
struct attach_listener {
    int fd;
    struct attach_early early[ATTACH_EARLY_MAX];
    unsigned early_count;
};

// network.c. Descriptors are -1 where there is none.
struct attach_network {
    int own, users;        // namespaces: of the network, and of users where only a user's own may have one
    int fd;                // reserves the addresses of the nodes on the machine's network
    uint32_t address_base; // of node 0, host byte order
};
void attach_network_make(struct attach_network *network);
void attach_network_enter(const struct attach_network *network); // a child of the simulator, before it becomes a program
void attach_network_end(struct attach_network *network);

struct attach_launch {
    uint32_t started;                    // number of programs
    pid_t pids[ATTACH_RUN_PROGRAMS_MAX]; // of programs; 0: not started, or reaped
    uint64_t ended_ps;                   // when one was reaped last
    sim_condition_t process_ended;
    sim_condition_t all_external;           // all wait for the outside, or another program was started
    unsigned node_processes[SCN_NODES_MAX]; // number of live ones
    uint32_t numbers[SCN_NODES_MAX];        // given to processes so far
    struct rlimit files;                    // descriptors that programs may have
};

// The number of a process in the run, and on the machine; 0: the process is over, and another one has that number.
struct attach_id {
    uint32_t id;
    pid_t pid;
};
// All processes so far. taken: numbers given to processes and threads.
struct attach_ids {
    struct attach_id *list;
    size_t count, room;
    uint32_t taken;
};

// --- listen.c -------------------------------------------------------------------------------------------------------

bool attach_listen(struct attach_server *server);
void attach_listen_end(struct attach_server *server);
// Attaches all processes that have connected, except children that a thread is about to announce: they begin at its
// time.
void attach_accept(struct attach_server *server);
// Attaches only this process, which has the run token: it has become another program, or connects a second time.
void attach_accept_again(struct attach_server *server, pid_t pid);
// Sends a descriptor to a process.
bool attach_descriptor_send(const struct attach_process *process, int fd);

// --- sysfs.c --------------------------------------------------------------------------------------------------------

#define ATTACH_SYSFS_BYTES 160
// Makes the nodes' folders in the run's directory. false: the reason is in the result.
bool attach_sysfs_make(struct attach_server *server);
void attach_sysfs_path(const struct attach_server *server, uint32_t node, char *path_out, size_t bytes);
void attach_folder_remove(const char *path); // and everything in it

// --- scratch.c ------------------------------------------------------------------------------------------------------

void attach_scratch_path(const struct attach_server *server, char *path_out, size_t bytes);
// A link to options->library_directory. Its name may stand in LD_PRELOAD, whatever the directory is called.
void attach_libraries_path(const struct attach_server *server, char *path_out, size_t bytes);
bool attach_scratch_make(struct attach_server *server); // false: the reason is in the result
// Removes the run's whole directory, and the shared memory of its nodes.
void attach_scratch_remove(struct attach_server *server);

// --- fingerprint.c --------------------------------------------------------------------------------------------------

// A file of which programs were made.
struct attach_loaded {
    char *path;
    uint64_t bytes;
};
struct attach_loaded_files {
    struct attach_loaded *list;
    size_t count;
};
void attach_fingerprint_note(const struct attach_process *process); // before its end
void attach_fingerprint_write(struct attach_server *server);        // into the result

// --- asked.c --------------------------------------------------------------------------------------------------------

void attach_asked_read(struct attach_server *server); // into the result

// --- launch.c -------------------------------------------------------------------------------------------------------

// Runs in a node's thread: starts the node's programs, and returns when all processes of the node have ended. As when
// people start programs, each one begins when the earlier ones all wait for others (as a server that listens), or after
// START_LATEST_PS.
void attach_node_main(void *arg, peach2_handle_t *board);
struct attach_node {
    struct attach_server *server;
    uint32_t node;
};
// Waits until the child has connected or ended. false: it sleeps or computes without having connected, and nobody waits
// for it any longer; or too many of this parent's children were like that.
bool attach_child_await(struct attach_process *parent, pid_t pid);
pid_t attach_parent_of(pid_t pid); // 0: none
// Is it a child of the process?
bool attach_is_child(const struct attach_process *process, uint64_t pid);
// Has the process with this descriptor ended?
bool attach_over(int pidfd);
// At the end: kills everything that was started.
void attach_kill_all(struct attach_server *server);
// Notes how a program of the options ended.
void attach_reap(struct attach_server *server, int program);

// --- timestamps.c ---------------------------------------------------------------------------------------------------

void attach_timestamps_begin(void);
void attach_timestamps_end(void);
void attach_timestamps_trap(bool on); // for the calling thread, and for what it forks

// --- refuse.c -------------------------------------------------------------------------------------------------------

#define ATTACH_PATH_BYTES 4096
// Why the program cannot be attached; NULL: it can, as far as its file shows.
const char *attach_refused(const char *program, bool functional);

// --- ids.c ----------------------------------------------------------------------------------------------------------

uint32_t attach_ids_take(struct attach_server *server);
bool attach_ids_note(struct attach_server *server, uint32_t id, pid_t pid); // false: no memory
// The number in the run of a process of the machine. -ESRCH: none.
int64_t attach_ids_of(const struct attach_server *server, uint64_t pid);
// The machine's number of a process of the run, or of a thread of the calling process. -ESRCH: none.
int64_t attach_ids_real(const struct attach_process *process, uint64_t id);
