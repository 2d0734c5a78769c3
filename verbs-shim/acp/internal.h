// Shared by the files of the library. Private to the room.
//
// There are two threads: the program's, which fills the command queue and waits, and the communication thread, the only
// one that calls libibverbs between acp_init and acp_finalize. They share the command queue, the mailbox for calls that
// the program waits for (struct acpb_request), `failed` and `waits`. The program also reads the own regions, which
// change only while it waits.
#pragma once

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "verbs-shim/acp/acp.h"
#include "verbs-shim/acp/acp_memory.h"
#include "verbs-shim/acp/boot.h"
#include "verbs-shim/backend/backend.h"

// Constants of morie2016 table 2 and of the published implementation.
enum {
    ACPB_QUEUE_COMMANDS = 1024,
    ACPB_REMOTE_COMMANDS = 2048,
    ACPB_REGIONS = 255,
    ACPB_CACHED_TABLES = 1024,
    ACPB_TAG_STARTER = 255,
    ACPB_STARTER_BYTES = 10240,
    ACPB_ROUNDS = 21,        // of a barrier with the largest number of ranks
    ACPB_MEETINGS = 64,      // datagrams that may be pending
    ACPB_MEETING_BYTES = 64, // includes a GRH
    ACPB_SLAB_TABLES = 16,   // cached tables per allocation
    ACPB_MEETING_QKEY = 0x1ac0acb
};

// Access flags of all memory that other ranks access.
#define ACPB_ACCESS                                                                                                    \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

// A global address: rank + 1 in 21 bits, colour in 1, tag in 8, offset in 34.
#define ACPB_OFFSET_BITS 34
#define ACPB_TAG_BITS    8
#define ACPB_RANKS_MAX   ((1u << 21) - 2)
#define ACPB_OFFSET_MASK ((UINT64_C(1) << ACPB_OFFSET_BITS) - 1)

// --- memory that other ranks access by RDMA -------------------------------------------------------------------------

// A registered region in its owner's table, and in the caches of other ranks.
struct acpb_region {
    uint64_t address, bytes; // bytes 0: the entry is free
    uint32_t rkey, lkey;
    uint32_t color;
    uint32_t used;  // how often the number was assigned
    uint64_t check; // checksum of the other fields: a reader detects an entry that is being written
};
_Static_assert(sizeof(struct acpb_region) == 40, "morie2016 table 2: 40 B an entry");

enum acpb_kind { ACPB_COPY, ACPB_CAS, ACPB_SWAP, ACPB_ADD, ACPB_XOR, ACPB_OR, ACPB_AND };

// A command in a queue and on its way to another rank. It is written as one piece; the last word shows that it is
// complete.
struct acpb_command {
    acp_ga_t dst, src;
    uint64_t bytes; // an atomic: 4 or 8
    uint64_t value, compare;
    uint32_t issuer, slot; // the rank that receives the status, and the index of that status
    uint32_t kind;         // enum acpb_kind
    uint32_t pad;
    uint64_t ticket; // from 1; 0: the slot was never used
};
_Static_assert(sizeof(struct acpb_command) == 64, "one cache line");

struct acpb_status {
    uint64_t value; // the word's old value
    uint64_t done;  // 1
};

// Memory that requests use besides the program's: a ticket and a head, a command, a status.
union acpb_scratch {
    struct {
        uint64_t ticket, head;
    };
    struct acpb_command command;
    struct acpb_status status;
    uint64_t word; // to be written
};

// Numbers of tasks: those of the command queue, then those of the remote command buffer, then one for the library
// itself.
enum { ACPB_TASK_REMOTE = ACPB_QUEUE_COMMANDS, ACPB_TASK_OWN = ACPB_TASK_REMOTE + ACPB_REMOTE_COMMANDS, ACPB_TASKS };

// One registered allocation. Its layout is the same in every rank, so a rank needs only the base and the key of another
// one.
struct acpb_control {
    struct acpb_region regions[ACPB_REGIONS + 1]; // published to other ranks; the last entry: starter memory
    uint64_t tail;                                // of the remote command buffer; other ranks increment it
    uint64_t head;                                // other ranks read it
    uint64_t signals[ACPB_ROUNDS];                // barriers that the round's partner has reached
    _Alignas(64) struct acpb_command commands[ACPB_REMOTE_COMMANDS];
    _Alignas(64) struct acpb_status statuses[ACPB_QUEUE_COMMANDS];
    union acpb_scratch scratch[ACPB_TASKS];
    uint8_t meetings[2 * ACPB_MEETINGS][ACPB_MEETING_BYTES]; // datagrams: received ones, then sent ones
    // It is followed by starter memory, then the generation of every rank's table (uint32_t).
};

// The starter table: what a rank needs to reach each other rank.
struct acpb_starter {
    uint64_t base; // address of its struct acpb_control
    uint32_t rkey;
    uint32_t meeting_qpn; // its UD queue pair
    uint16_t lid;
};

// --- tasks ----------------------------------------------------------------------------------------------------------

// The next step of a task. The table in engine.c has a row for each step that uses a queue pair.
enum acpb_step {
    ACPB_STEP_IDLE,     // not started
    ACPB_STEP_TABLE,    // reads the peer's table of regions
    ACPB_STEP_TRANSFER, // reads or writes data
    ACPB_STEP_TICKET,   // increments the peer's tail
    ACPB_STEP_HEAD,     // reads its head until there is room
    ACPB_STEP_DELIVER,  // writes the command
    ACPB_STEP_STATUS,   // waits for the peer's status; uses no queue pair
    ACPB_STEP_REPLY,    // writes the status of a command that came from the peer
    ACPB_STEP_WRITE,    // writes a word of the library
    ACPB_STEP_DONE
};

struct acpb_task {
    struct acpb_command command;
    uint64_t order; // it starts when the head has reached this count
    enum acpb_step step;
    uint32_t number;
    bool fresh;             // the peer's table was read for this task
    uint64_t moved_bytes;   // bytes of a copy that are done
    uint64_t piece_bytes;   // bytes of the current request
    uint64_t offset;        // offset of a word of the library in the peer's control block
    struct acpb_task *next; // list of tasks that wait for the same queue pair, or for statuses
};

enum acpb_link {
    ACPB_LINK_NONE,    // the peer's queue pair is not known
    ACPB_LINK_CAN_GET, // ready to receive; unknown whether the peer is
    ACPB_LINK_USABLE
};

// A rank with which this one communicates.
struct acpb_peer {
    uint32_t rank;
    enum acpb_link link;
    struct ibv_qp *qp;
    bool busy;                      // a request is outstanding
    struct acpb_task *first, *last; // tasks that need the queue pair; the first one uses it
    struct acpb_table *table;       // of its regions; NULL: not cached
    struct acpb_peer *next;         // list of all peers
    bool asking;                    // a task waits for the connection
    uint64_t ask_again_ps;
    unsigned asked; // number of requests sent
};

// A cached table of another rank's regions.
struct acpb_table {
    struct acpb_region *regions; // in a slab
    struct acpb_slab *slab;
    struct acpb_peer *owner; // NULL: free
    uint32_t generation;     // read before the table was read
    uint64_t used;           // counts uses, to find the least recently used table
};

struct acpb_slab {
    struct backend_buffer buffer; // page-aligned, so that reading a table takes the same time in each run
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
    // used only by the communication thread
    bool began;
    uint32_t round;         // SYNC
    struct acpb_peer *peer; // REGISTER: the rank that is being notified
    uint32_t rank;          // CONNECT: the next rank
};

// --- a process ------------------------------------------------------------------------------------------------------

struct acpb_process {
    const struct backend *backend;
    struct acp_boot boot;
    bool has_boot, initialised, threaded;
    bool abandoned; // the process has ended, and with it devices and pinned memory
    _Atomic bool failed;
    uint32_t rank, ranks;

    // the device
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *control_mr;
    struct ibv_qp *meeting_qp;
    struct ibv_ah *meeting_ahs[ACPB_MEETINGS]; // of datagrams in flight
    struct ibv_port_attr port;
    uint8_t port_number;
    unsigned queue_pairs;

    // memory
    struct acpb_control *control; // pinned: device writes to it wake the communication thread
    struct backend_buffer control_buffer;
    size_t control_bytes;
    uint8_t *starter;
    uint64_t starter_bytes;
    struct acpb_region regions[ACPB_REGIONS + 1]; // the rank's own copy: other ranks may write the published one
    struct ibv_mr *mrs[ACPB_REGIONS];
    uint32_t *generations; // of each rank's table; other ranks write it
    uint32_t generation;   // of the own table
    struct acpb_starter *starters;
    uint32_t job; // hash of all starters: datagrams of another job, or from before a reset, have another value

    // the command queue: the program is at the tail, the communication thread at start and head. These are counts, not
    // indexes
    struct acpb_task *tasks; // ACPB_TASKS
    _Atomic uint64_t tail, head;
    uint64_t start;
    _Atomic bool waits; // the program waits for the head or for the request
    struct acpb_request request;

    // remote commands: `taken` were started, `served` are complete without a gap
    uint64_t taken, served;
    struct acpb_task *statuses_first, *statuses_last; // tasks that wait for a status

    // peers
    struct acpb_peer **peers; // by rank
    struct acpb_peer *peers_first, *peers_last;
    unsigned peers_count;
    unsigned asking; // number of peers in set-up
    unsigned busy;   // number of peers with an outstanding request

    // cached tables of other ranks
    struct acpb_table *tables;
    struct acpb_slab slabs[ACPB_CACHED_TABLES / ACPB_SLAB_TABLES];
    unsigned table_count;
    bool tables_wanted; // a task waits for a table, as all are being read
    uint64_t table_uses;
    uint64_t barriers; // barriers begun
};

// process.c
struct acpb_process *acpb_current(void); // NULL: acp_init was not called, or has failed
__attribute__((format(printf, 2, 3))) void acpb_fail(struct acpb_process *process, const char *format, ...);
void acpb_wait_failed(struct acpb_process *process); // does not return
static inline void acpb_pay(const struct acpb_process *process, enum backend_cost kind, uint64_t amount)
{
    process->backend->ops->cost(process->backend->ctx, kind, amount);
}

// Called before a word that the other thread reads is stored.
static inline void acpb_elapse(const struct acpb_process *process)
{
    process->backend->ops->thread->elapse(process->backend->ctx);
}

// device.c: the libibverbs objects that exist as long as the process.
int acpb_device_open(struct acpb_process *process);
void acpb_device_close(struct acpb_process *process);

// memory.c: memory that other ranks access.
size_t acpb_generations_offset(const struct acpb_process *process); // in the control block of every rank
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
static inline bool acpb_is_own(const struct acpb_process *process, acp_ga_t ga) // the address is in the own memory
{
    return acpb_rank_of(ga) == process->rank;
}
acp_ga_t acpb_address(uint32_t rank, uint32_t color, uint32_t tag, uint64_t offset);
// The checksum of an entry's words. A free entry has none.
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
// The own region that contains all of these bytes; NULL: none.
const struct acpb_region *acpb_region_find(const struct acpb_process *process, acp_ga_t ga, uint64_t bytes);

// thread.c: the communication thread, and how the program waits for it.
int acpb_thread_start(struct acpb_process *process);
void acpb_thread_stop(struct acpb_process *process);
void acpb_program_wait(struct acpb_process *process, uint64_t seen);
void acpb_program_pause(struct acpb_process *process); // one poll of the program's own loop; others run
uint64_t acpb_changes(const struct acpb_process *process);
int acpb_request_wait(struct acpb_process *process, enum acpb_call call); // the caller has set its arguments

// The following functions belong to the communication thread.

// request.c: a step of the call that the program waits for. true: the call is done.
bool acpb_request_advance(struct acpb_process *process);

// engine.c: tasks
void acpb_task_start(struct acpb_process *process, struct acpb_task *task);
void acpb_peer_advance(struct acpb_process *process, struct acpb_peer *peer);
acp_ga_t acpb_peer_address(const struct acpb_process *process, const struct acpb_peer *peer); // of its first task
void acpb_peer_completed(struct acpb_process *process, struct acpb_peer *peer);
// Writes a word of the library: scratch.word of ACPB_TASK_OWN to this offset of the peer's control block.
void acpb_word_write(struct acpb_process *process, struct acpb_peer *peer, uint64_t offset, uint64_t value,
                     uint32_t bytes);
bool acpb_statuses_poll(struct acpb_process *process);

// local.c: accesses of the processor to the own memory. Returns the old value of an atomic; 0 for a copy.
uint64_t acpb_local_run(struct acpb_process *process, const struct acpb_command *command);
void acpb_local_store(struct acpb_process *process, const struct acpb_command *command, uint64_t old);

// peer.c
struct acpb_peer *acpb_peer_get(struct acpb_process *process, uint32_t rank);
void acpb_peer_ask(struct acpb_process *process, struct acpb_peer *peer);
bool acpb_peers_ask_again(struct acpb_process *process);
// How long the thread may sleep: until a set-up datagram must be retransmitted, or a device that is a library (tca0)
// must check the timeout of a request. 0: forever.
uint64_t acpb_peers_pause_ns(const struct acpb_process *process);
void acpb_meeting_arrived(struct acpb_process *process, const struct ibv_wc *wc);
int acpb_meetings_post(struct acpb_process *process);
void acpb_peers_destroy(struct acpb_process *process);

// table.c
struct acpb_table *acpb_table_valid(struct acpb_process *process, struct acpb_peer *peer); // NULL: it must be read
struct acpb_table *acpb_table_fill(struct acpb_process *process, struct acpb_peer *peer);  // a free table to read into
void acpb_tables_destroy(struct acpb_process *process);
