// What the files of the library share. Private to the room.
//
// Two threads: the program's, which fills the command queue and waits, and the communication thread, which alone calls
// libibverbs between acp_init and acp_finalize. They share the command queue, the mailbox for calls that the program
// waits for (struct acpb_request), `failed` and `waits`; the program reads the own regions, which change only while it
// waits.
#pragma once

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "verbs-shim/acp/acp.h"
#include "verbs-shim/acp/acp_memory.h"
#include "verbs-shim/acp/boot.h"
#include "verbs-shim/backend/backend.h"

// morie2016 table 2 and the published implementation's constants.
enum {
    ACPB_QUEUE_COMMANDS = 1024,
    ACPB_REMOTE_COMMANDS = 2048,
    ACPB_REGIONS = 255,
    ACPB_CACHED_TABLES = 1024,
    ACPB_TAG_STARTER = 255,
    ACPB_STARTER_BYTES = 10240,
    ACPB_ROUNDS = 21,        // of a barrier of as many ranks as an address can name
    ACPB_MEETINGS = 64,      // datagrams that may wait
    ACPB_MEETING_BYTES = 64, // with room for a GRH
    ACPB_SLAB_TABLES = 16,   // cached tables that are allocated at a time
    ACPB_MEETING_QKEY = 0x1ac0acb
};

// Of everything that other ranks reach.
#define ACPB_ACCESS                                                                                                    \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

// A global address: rank + 1 in 21 bits, colour in 1, tag in 8, offset in 34.
#define ACPB_OFFSET_BITS 34
#define ACPB_TAG_BITS    8
#define ACPB_RANKS_MAX   ((1u << 21) - 2)
#define ACPB_OFFSET_MASK ((UINT64_C(1) << ACPB_OFFSET_BITS) - 1)

// --- memory that other ranks reach by RDMA --------------------------------------------------------------------------

// A registered region as its owner's table has it, and as others cache it.
struct acpb_region {
    uint64_t address, bytes; // bytes 0: the entry is free
    uint32_t rkey, lkey;
    uint32_t color;
    uint32_t used;  // how often the number was given out
    uint64_t check; // of the others: who reads an entry that is being written sees it
};
_Static_assert(sizeof(struct acpb_region) == 40, "morie2016 table 2: 40 B an entry");

enum acpb_kind { ACPB_COPY, ACPB_CAS, ACPB_SWAP, ACPB_ADD, ACPB_XOR, ACPB_OR, ACPB_AND };

// In a queue, and as it goes to another rank. One writes it in one piece; the last word says that it is there.
struct acpb_command {
    acp_ga_t dst, src;
    uint64_t bytes; // of an atomic: 4 or 8
    uint64_t value, compare;
    uint32_t issuer, slot; // who gets the status, and which of his
    uint32_t kind;         // enum acpb_kind
    uint32_t pad;
    uint64_t ticket; // from 1 on; 0: none was here
};
_Static_assert(sizeof(struct acpb_command) == 64, "one cache line");

struct acpb_status {
    uint64_t value; // the word's old value
    uint64_t done;  // 1
};

// What requests read from and write to beside the program's memory: a ticket and a head, a command, a status.
union acpb_scratch {
    struct {
        uint64_t ticket, head;
    };
    struct acpb_command command;
    struct acpb_status status;
    uint64_t word; // to be written
};

// Tasks of the command queue, of the remote command buffer, and one of the library itself have numbers in this order.
enum { ACPB_TASK_REMOTE = ACPB_QUEUE_COMMANDS, ACPB_TASK_OWN = ACPB_TASK_REMOTE + ACPB_REMOTE_COMMANDS, ACPB_TASKS };

// One registered allocation. Its layout is the same at every rank, so that base and key of another one's suffice.
struct acpb_control {
    struct acpb_region regions[ACPB_REGIONS + 1]; // published; the last one: starter memory
    uint64_t tail;                                // of the remote command buffer: other ranks count it up
    uint64_t head;                                // other ranks read it
    uint64_t signals[ACPB_ROUNDS];                // barriers that the round's partner has come to
    _Alignas(64) struct acpb_command commands[ACPB_REMOTE_COMMANDS];
    _Alignas(64) struct acpb_status statuses[ACPB_QUEUE_COMMANDS];
    union acpb_scratch scratch[ACPB_TASKS];
    uint8_t meetings[2 * ACPB_MEETINGS][ACPB_MEETING_BYTES]; // datagrams: those that come, those that go
    // Behind it: starter memory, then the generation of every rank's table (uint32_t).
};

// The starter table: of each rank, what one needs to reach it.
struct acpb_starter {
    uint64_t base; // of its struct acpb_control
    uint32_t rkey;
    uint32_t meeting_qpn; // of its queue pair for datagrams
    uint16_t lid;
};

// --- tasks ----------------------------------------------------------------------------------------------------------

// What a task does next. The table in engine.c has a row for each step that uses a queue pair.
enum acpb_step {
    ACPB_STEP_IDLE,     // not started
    ACPB_STEP_TABLE,    // reads the peer's table of regions
    ACPB_STEP_TRANSFER, // reads or writes data
    ACPB_STEP_TICKET,   // counts up the peer's tail
    ACPB_STEP_HEAD,     // reads its head, until there is room
    ACPB_STEP_DELIVER,  // writes the command
    ACPB_STEP_STATUS,   // waits for the peer's status; needs no queue pair
    ACPB_STEP_REPLY,    // writes the status of a command that came from the peer
    ACPB_STEP_WRITE,    // writes a word of the library
    ACPB_STEP_DONE
};

struct acpb_task {
    struct acpb_command command;
    uint64_t order; // it starts when the head has come so far
    enum acpb_step step;
    uint32_t number;
    bool fresh;             // the peer's table was read for this task
    uint64_t moved_bytes;   // of a copy, so far
    uint64_t piece_bytes;   // under way
    uint64_t offset;        // of a word of the library, in the peer's control block
    struct acpb_task *next; // of those that wait for the same queue pair, or for statuses
};

enum acpb_link {
    ACPB_LINK_NONE,    // the peer's queue pair is not known
    ACPB_LINK_CAN_GET, // ready to receive; the peer is not known to be
    ACPB_LINK_USABLE
};

// A rank that this one has to do with.
struct acpb_peer {
    uint32_t rank;
    enum acpb_link link;
    struct ibv_qp *qp;
    bool busy;                      // a request is under way
    struct acpb_task *first, *last; // that need the queue pair; the first one has it
    struct acpb_table *table;       // of its regions; NULL: not cached
    struct acpb_peer *next;         // of all
    bool asking;                    // somebody waits for the connection
    uint64_t ask_again_ps;
    unsigned asked; // times
};

// A cached table of another rank's regions.
struct acpb_table {
    struct acpb_region *regions; // in a slab
    struct acpb_slab *slab;
    struct acpb_peer *owner; // NULL: free
    uint32_t generation;     // as of before it was read
    uint64_t used;           // a count of uses, to find the one that was unused for longest
};

struct acpb_slab {
    struct backend_buffer buffer; // on pages, so that reading a table takes the same time in each run
    struct ibv_mr *mr;
    struct acpb_region (*tables)[ACPB_REGIONS + 1];
};

// --- calls that the program waits for -------------------------------------------------------------------------------

enum acpb_call { ACPB_CALL_NONE, ACPB_CALL_REGISTER, ACPB_CALL_UNREGISTER, ACPB_CALL_SYNC, ACPB_CALL_CONNECT };

struct acpb_request {
    _Atomic uint32_t call; // enum acpb_call; NONE: done
    void *address;
    uint64_t bytes;
    uint32_t color, tag;
    int error;
    // the communication thread's
    bool began;
    uint32_t round;         // SYNC
    struct acpb_peer *peer; // REGISTER: who is told at the moment
    uint32_t rank;          // CONNECT: the next one
};

// --- a process ------------------------------------------------------------------------------------------------------

struct acpb_process {
    const struct backend *backend;
    struct acp_boot boot;
    bool has_boot, initialised, threaded;
    bool abandoned; // the process has ended with it: devices and pinned memory are gone
    _Atomic bool failed;
    uint32_t rank, ranks;

    // the device
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *control_mr;
    struct ibv_qp *meeting_qp;
    struct ibv_ah *meeting_ahs[ACPB_MEETINGS]; // of datagrams that are under way
    struct ibv_port_attr port;
    uint8_t port_number;
    unsigned queue_pairs;

    // memory
    struct acpb_control *control; // pinned: the communication thread wakes when devices write there
    struct backend_buffer control_buffer;
    size_t control_bytes;
    uint8_t *starter;
    uint64_t starter_bytes;
    struct acpb_region regions[ACPB_REGIONS + 1]; // what the rank itself goes by: others may write the published ones
    struct ibv_mr *mrs[ACPB_REGIONS];
    uint32_t *generations; // of each rank's table; others write it
    uint32_t generation;   // of the own table
    struct acpb_starter *starters;
    uint32_t job; // of all ranks' starters: datagrams of another job, or of before a reset, have another one

    // the command queue: program at the tail, communication thread at start and head. Counts, not places.
    struct acpb_task *tasks; // ACPB_TASKS
    _Atomic uint64_t tail, head;
    uint64_t start;
    _Atomic bool waits; // the program, for the head or the request
    struct acpb_request request;

    // remote commands: taken, and done as a whole
    uint64_t taken, served;
    struct acpb_task *statuses_first, *statuses_last; // tasks that wait for a status

    // peers
    struct acpb_peer **peers; // by rank
    struct acpb_peer *peers_first, *peers_last;
    unsigned peers_count;
    unsigned asking; // of them
    unsigned busy;   // with a request under way

    // tables of others
    struct acpb_table *tables;
    struct acpb_slab slabs[ACPB_CACHED_TABLES / ACPB_SLAB_TABLES];
    unsigned table_count;
    bool tables_wanted; // a task waits for one, as all are being read
    uint64_t table_uses;
    uint64_t barriers; // begun
};

// process.c
struct acpb_process *acpb_current(void); // NULL: acp_init was not called, or has failed
__attribute__((format(printf, 2, 3))) void acpb_fail(struct acpb_process *process, const char *format, ...);
void acpb_wait_failed(struct acpb_process *process); // does not return
static inline void acpb_pay(const struct acpb_process *process, enum backend_cost kind, uint64_t amount)
{
    process->backend->ops->cost(process->backend->ctx, kind, amount);
}

// Before a word that the other thread reads is stored.
static inline void acpb_elapse(const struct acpb_process *process)
{
    process->backend->ops->thread->elapse(process->backend->ctx);
}

// device.c: everything of libibverbs that lives as long as the process.
int acpb_device_open(struct acpb_process *process);
void acpb_device_close(struct acpb_process *process);

// memory.c: what other ranks reach.
size_t acpb_generations_offset(const struct acpb_process *process); // in the control block of any rank
int acpb_memory_create(struct acpb_process *process);
void acpb_memory_destroy(struct acpb_process *process);

static inline bool acpb_is_address(const struct acpb_process *process, acp_ga_t ga)
{
    uint64_t rank = ga >> (64 - 21);
    return rank >= 1 && rank <= process->ranks;
}
static inline uint32_t acpb_rank_of(acp_ga_t ga)
{
    return (uint32_t)(ga >> (64 - 21)) - 1;
}
static inline uint32_t acpb_tag_of(acp_ga_t ga)
{
    return (uint32_t)(ga >> ACPB_OFFSET_BITS) & ((1u << ACPB_TAG_BITS) - 1);
}
static inline uint32_t acpb_color_of(acp_ga_t ga)
{
    return (uint32_t)(ga >> (ACPB_OFFSET_BITS + ACPB_TAG_BITS)) & 1;
}
static inline uint64_t acpb_offset_of(acp_ga_t ga)
{
    return ga & ACPB_OFFSET_MASK;
}
// region.c
static inline bool acpb_is_own(const struct acpb_process *process, acp_ga_t ga) // of an address
{
    return acpb_rank_of(ga) == process->rank;
}
acp_ga_t acpb_address(uint32_t rank, uint32_t color, uint32_t tag, uint64_t offset);
// What belongs to the entry's words. An entry that is free has none.
static inline uint64_t acpb_region_check(const struct acpb_region *region)
{
    uint64_t keys = (uint64_t)region->rkey << 32 | region->lkey;
    uint64_t rest = (uint64_t)region->color << 32 | region->used;
    return ~(region->address ^ (region->bytes << 7) ^ keys ^ (rest << 13));
}
static inline bool acpb_region_is_whole(const struct acpb_region *region)
{
    return region->bytes != 0 && region->check == acpb_region_check(region);
}
// The own region that holds all of these bytes; NULL: none does.
const struct acpb_region *acpb_region_find(const struct acpb_process *process, acp_ga_t ga, uint64_t bytes);

// thread.c: the communication thread, and how the program waits for it.
int acpb_thread_start(struct acpb_process *process);
void acpb_thread_stop(struct acpb_process *process);
void acpb_program_wait(struct acpb_process *process, uint64_t seen);
void acpb_program_glance(struct acpb_process *process); // a turn of the program's own loop: others go on meanwhile
uint64_t acpb_changes(const struct acpb_process *process);
int acpb_request_wait(struct acpb_process *process, enum acpb_call call); // its arguments are set

// The rest is the communication thread's.

// request.c: a step of the call that the program waits for. true: something was done.
bool acpb_request_advance(struct acpb_process *process);

// engine.c: tasks
void acpb_task_start(struct acpb_process *process, struct acpb_task *task);
void acpb_peer_advance(struct acpb_process *process, struct acpb_peer *peer);
acp_ga_t acpb_peer_address(const struct acpb_process *process, const struct acpb_peer *peer); // of its first task
void acpb_peer_completed(struct acpb_process *process, struct acpb_peer *peer);
// A word of the library's own: scratch.word of ACPB_TASK_OWN to this address of the peer's control block.
void acpb_word_write(struct acpb_process *process, struct acpb_peer *peer, uint64_t offset, uint64_t value,
                     uint32_t bytes);
bool acpb_statuses_look(struct acpb_process *process);

// local.c: what the processor does on the own memory. The old value of an atomic; 0 of a copy.
uint64_t acpb_local_run(struct acpb_process *process, const struct acpb_command *command);
void acpb_local_store(struct acpb_process *process, const struct acpb_command *command, uint64_t old);

// peer.c
struct acpb_peer *acpb_peer_get(struct acpb_process *process, uint32_t rank);
void acpb_peer_ask(struct acpb_process *process, struct acpb_peer *peer);
bool acpb_peers_ask_again(struct acpb_process *process);
// How long the thread may sleep: until one has to ask again, or a device that is a library (tca0) has to be asked
// whether a request's time is over. 0: for ever.
uint64_t acpb_peers_pause_ns(const struct acpb_process *process);
void acpb_meeting_arrived(struct acpb_process *process, const struct ibv_wc *wc);
int acpb_meetings_post(struct acpb_process *process);
void acpb_peers_destroy(struct acpb_process *process);

// table.c
struct acpb_table *acpb_table_valid(struct acpb_process *process, struct acpb_peer *peer); // NULL: it has to be read
struct acpb_table *acpb_table_fill(struct acpb_process *process, struct acpb_peer *peer);  // free, to be read into
void acpb_tables_destroy(struct acpb_process *process);
