// Shared by the files of libtca. Private to the folder.
//
// All state belongs to the process that backend_current() names. Heap objects are in lists of the context, so nothing
// leaks when a program is abandoned in the middle of a call.
#pragma once

#include <stdbool.h>

#include "verbs-shim/backend/backend.h"
#include "verbs-shim/cuda/pin.h"
#include "verbs-shim/libtca/board_memory.h"
#include "verbs-shim/peach2/peach2_driver.h"
#include "verbs-shim/peach2/peach2_poll_timer.h"
#include "verbs-shim/libtca/tca-api.h"

#define TCA_MESSAGE_MAX 256

struct tca_allocation {
    struct tca_allocation *next;
    uint32_t number;
    struct backend_buffer buffer; // CPU memory from tcaMalloc
    char *address;                // the program's address
    size_t size;
    uint64_t bus_address; // CPU memory
    struct cuda_pin *pin; // GPU memory; NULL: CPU memory
    uint64_t host_number; // CPU memory from cudaMallocHost: the number of that call; 0: from tcaMalloc
    bool borrowed;        // allocated by the program with cudaMalloc or cudaMallocHost
};

// The slots for notifications: tcaSlots words for every sender, in host memory and again in the board's memory. For
// each sender a bit for each slot records whether a notification came, and whether the last one came to the board's
// memory.
struct tca_inbox {
    struct backend_buffer slots;
    uint32_t learned[tcaNodesMax], internal[tcaNodesMax];
};

// One tcaDescSetMemcpy.
struct tca_copy {
    struct tca_copy *next;
    uint64_t source, destination;
    uint64_t width, count; // rows; a copy without rows has one row
    uint64_t source_pitch, destination_pitch;
    int flags;
    uint32_t slot, tag;
    tcaHandle to, from;
};

struct tcaDesc {
    struct tca_context *context;
    struct tcaDesc *next;
    struct tca_copy *copies, **copies_end;
    peach2_chain_t *chain;      // NULL: never built, or changed since
    struct backend_buffer tags; // the words that are copied as notifications
    uint32_t board_index, board_count;
};

struct tca_channel {
    tcaDesc *desc; // NULL: nothing is set
    bool prepared; // its registers write the channel's completion word at the end
    bool taken;    // taken by another library (board_memory.h)
    bool running;
    bool failed; // it ended with this error, which was not reported yet
    unsigned dma_error;
};

struct tca_context {
    struct backend_process *process;
    struct backend backend;
    peach2_handle_t *board;
    bool holds_board; // tcaInit has claimed it
    struct tcaComm comm;
    bool comm_is_environments; // the program did not call tcaSetComm
    struct tca_allocation *allocations;
    uint32_t allocation_count; // number of allocations ever made
    tcaDesc *descs;
    struct tca_channel channels[tcaChannels];
    struct backend_buffer status; // a completion word for each channel
    struct tca_inbox inbox;
    struct tca_table *tables[tcaTables + 1]; // tables of the older generation (table.c)
    bool board_units_used[TCA_BOARD_SLOTS];  // units of the board's memory, 32 B each
    uint64_t timeout_ns;                     // timeout of waits; 0: none
    bool notify_internal;                    // the latest notification, received or sent, is in the board's memory
    bool notes_suppressed;                   // refusals are not reported: a library makes the calls
    char message[TCA_MESSAGE_MAX];
};

// error.c: stores the message and returns the code. context may be NULL.
int tca_refuse(struct tca_context *context, enum tcaError error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// memory.c: NULL if the memory was freed.
struct tca_allocation *tca_allocation_find(const struct tca_context *context, uint32_t number);
// A new allocation in the list, with so many bytes of pinned memory; 0: no memory of its own. NULL: no pinned memory.
struct tca_allocation *tca_allocation_make(struct tca_context *context, size_t pinned_bytes);
void tca_allocation_drop(struct tca_context *context, struct tca_allocation *allocation);
// A DMA of this process uses it.
bool tca_allocation_is_used(struct tca_context *context, const struct tca_allocation *allocation);
// The allocation of this kind of memory that contains ptr; NULL: none.
struct tca_allocation *tca_allocation_around(const struct tca_context *context, const void *ptr, tcaMemoryType type);
void tca_allocations_free(struct tca_context *context); // frees only the heap objects

// gpu.c
int tca_gpu_malloc(struct tca_context *context, void **ptr, size_t size);
int tca_gpu_free(struct tca_context *context, void *ptr);
// The allocation of size bytes at ptr; the memory is pinned if it was not.
int tca_gpu_borrow(struct tca_context *context, const char *call, void *ptr, size_t size,
                   const struct tca_allocation **allocation_out);
// The same for CPU memory from cudaMallocHost, not from tcaMalloc. tcaErrorNotTcaMemory.
int tca_host_borrow(struct tca_context *context, const char *call, void *ptr, size_t size,
                    const struct tca_allocation **allocation_out);
// true: the program has freed borrowed CPU memory.
bool tca_host_is_freed(const struct tca_allocation *allocation);

// handle.c: checks that the handle is intact and names a node of the sub-cluster. role: its name in the message.
int tca_handle_check(struct tca_context *context, const char *call, const char *role, const tcaHandle *handle);
// The same, and if it is this node's memory, that the memory still exists.
int tca_handle_check_any(struct tca_context *context, const char *call, const char *role, const tcaHandle *handle);
// The same, and that it is this node's memory.
int tca_handle_check_local(struct tca_context *context, const char *call, const char *role, const tcaHandle *handle);
// The address of its memory for this process's board: a window address, or an own bus address.
uint64_t tca_handle_address(const struct tca_context *context, const tcaHandle *handle, uint64_t offset);
// The address for any processor and board of the sub-cluster, also for the own ones.
uint64_t tca_handle_window(const struct tca_context *context, const tcaHandle *handle, uint64_t offset);

// notify.c: creates the slots for this process's notifications, empty. tcaErrorNoMemory, tcaErrorIO.
int tca_inbox_make(struct tca_context *context);
// The target for a notification of this process's board to the handle's node: a window address, or an own bus address.
uint64_t tca_slot_address(const struct tca_context *context, const tcaHandle *handle, uint32_t slot, bool board);
// The word that is written as a notification.
static inline uint64_t tca_notification(uint32_t tag)
{
    return UINT64_C(0x5443416e) << 32 | tag; // never 0, so an empty slot matches no tag
}

// A descriptor that runs on a channel cannot be changed or freed. tcaErrorArgument (not a descriptor of the process),
// tcaErrorBusy.
int tca_desc_check(struct tca_context *context, const char *call, const tcaDesc *desc);
// desc.c: fills in the addresses of a copy whose rows, flags and tag are set, or refuses it.
int tca_copy_resolve(struct tca_context *context, const char *call, struct tca_copy *copy, const tcaHandle *dst,
                   uint64_t dst_offset, const tcaHandle *src, uint64_t src_offset, int wait_slot);
// Appends a copy to a descriptor that belongs to the process and does not run.
int tca_desc_add(tcaDesc *desc, const char *call, const struct tca_copy *copy);
void tca_desc_release(tcaDesc *desc); // releases what tcaDescSet built
bool tca_desc_is_set(const tcaDesc *desc, unsigned channel);
bool tca_desc_is_running(const tcaDesc *desc);
void tca_descs_free(struct tca_context *context);  // frees only the heap objects
void tca_tables_free(struct tca_context *context); // table.c; frees only the heap objects
// chain.c: builds the chain of a descriptor that has none.
int tca_desc_build(tcaDesc *desc, const char *call);

// dma.c: tcaDescSet; messages of refusals name `call`.
int tca_desc_set(struct tca_context *context, const char *call, tcaDesc *desc, int channel);
#define TCA_DURATION_MAX 32
// "1 s", "1500 us": in the largest unit that needs no fraction.
const char *tca_duration_text(uint64_t ns, char text[TCA_DURATION_MAX]);
// true: the channel still runs after a short wait.
bool tca_channel_is_running(struct tca_context *context, unsigned channel);

// --- the environment ------------------------------------------------------------------------------------------------

// Implemented by environments that have ranks of their own (MPI), for programs that never call tcaSetComm. False: there
// are no ranks now.
__attribute__((weak)) bool tca_comm_of_environment(struct tcaComm *comm_out);
// The same for a list that is shorter than the world: the messages of the first `givers` ranks reach every rank that
// calls; later ranks may call or not. Returns 0 or a negative errno.
__attribute__((weak)) int tca_gather_of_environment(const void *mine, void *all, size_t bytes, int givers);
