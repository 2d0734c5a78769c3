// What the files of libtca share. Private to the folder.
//
// All state hangs on the process that backend_current() names. What is on the heap is in lists of the context, so that
// nothing is lost when a program is abandoned in the middle of a call.
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
    struct backend_buffer buffer; // of CPU memory from tcaMalloc
    char *address;                // as the program knows it
    size_t size;
    uint64_t bus_address; // of CPU memory
    struct cuda_pin *pin; // GPU memory; NULL: CPU memory
    uint64_t host_number; // CPU memory from cudaMallocHost, and from which; 0: from tcaMalloc
    bool borrowed;        // the program's, from cudaMalloc or cudaMallocHost
};

// Where notifications arrive: tcaSlots words for every sender, in host memory and once more in the board's. Of each
// sender a bit for each slot says whether there was one, and whether the last one came to the board's memory.
struct tca_inbox {
    struct backend_buffer slots;
    uint32_t learned[tcaNodesMax], internal[tcaNodesMax];
};

// One tcaDescSetMemcpy.
struct tca_copy {
    struct tca_copy *next;
    uint64_t source, destination;
    uint64_t width, count; // rows; a copy without rows has one
    uint64_t source_pitch, destination_pitch;
    int flags;
    uint32_t slot, tag;
    tcaHandle to, from;
};

struct tcaDesc {
    struct tca_context *context;
    struct tcaDesc *next;
    struct tca_copy *copies, **copies_end;
    peach2_chain_t *chain;      // NULL: changed since, or never written
    struct backend_buffer tags; // the words that notifications are copied from
    uint32_t board_index, board_count;
};

struct tca_channel {
    tcaDesc *desc; // NULL: nothing is set
    bool prepared; // its registers tell of the end in the channel's completion word
    bool taken;    // by another library (board_memory.h)
    bool running;
    bool failed; // it was seen to end, with this error, and nobody was told
    unsigned dma_error;
};

struct tca_context {
    struct backend_process *process;
    struct backend backend;
    peach2_handle_t *board;
    bool holds_board; // tcaInit has claimed it
    struct tcaComm comm;
    bool comm_is_environments; // nobody called tcaSetComm
    struct tca_allocation *allocations;
    uint32_t allocation_count; // ever made
    tcaDesc *descs;
    struct tca_channel channels[tcaChannels];
    struct backend_buffer status; // a completion word for each channel
    struct tca_inbox inbox;
    struct tca_table *tables[tcaTables + 1]; // of the older generation (table.c)
    bool board_units_used[TCA_BOARD_SLOTS];  // of the board's memory, 32 B each
    uint64_t timeout_ns;                     // of waits; 0: none
    bool notify_internal;                    // where the latest notification came, or the latest copy sends one
    bool quiet; // a library tries calls that may be refused
    char message[TCA_MESSAGE_MAX];
};

// error.c: notes the message and returns the code. context may be NULL.
int tca_refuse(struct tca_context *context, enum tcaError error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// memory.c: NULL when the memory was freed.
struct tca_allocation *tca_allocation_find(const struct tca_context *context, uint32_t number);
// In the list, with so many bytes of pinned memory; 0: none of its own. NULL: no pinned memory.
struct tca_allocation *tca_allocation_make(struct tca_context *context, size_t pinned_bytes);
void tca_allocation_drop(struct tca_context *context, struct tca_allocation *allocation);
// A DMA of this process reads or writes it.
bool tca_allocation_is_used(struct tca_context *context, const struct tca_allocation *allocation);
// With this kind of memory around ptr; NULL: none.
struct tca_allocation *tca_allocation_around(const struct tca_context *context, const void *ptr, tcaMemoryType type);
void tca_allocations_free(struct tca_context *context); // the heap's part alone

// gpu.c
int tca_gpu_malloc(struct tca_context *context, void **ptr, size_t size);
int tca_gpu_free(struct tca_context *context, void *ptr);
// The allocation of size bytes at ptr, pinned now if it is not yet.
int tca_gpu_borrow(struct tca_context *context, const char *call, void *ptr, size_t size,
                   const struct tca_allocation **allocation_out);
// The same for CPU memory that may come from cudaMallocHost, and is no tcaMalloc's. tcaErrorNotTcaMemory.
int tca_host_borrow(struct tca_context *context, const char *call, void *ptr, size_t size,
                    const struct tca_allocation **allocation_out);
// Whether the program has given borrowed CPU memory back.
bool tca_host_is_freed(const struct tca_allocation *allocation);

// handle.c: the handle is whole and names a node of the sub-cluster. role: what the message calls it.
int tca_handle_check(struct tca_context *context, const char *call, const char *role, const tcaHandle *handle);
// The same, and where it is this node's, the memory is still there.
int tca_handle_check_any(struct tca_context *context, const char *call, const char *role, const tcaHandle *handle);
// The same, and it is this node's.
int tca_handle_check_local(struct tca_context *context, const char *call, const char *role, const tcaHandle *handle);
// Where its memory is for this process's board: a window address, or an own bus address.
uint64_t tca_handle_address(const struct tca_context *context, const tcaHandle *handle, uint64_t offset);
// Where it is for any processor and board of the sub-cluster, the own ones included.
uint64_t tca_handle_window(const struct tca_context *context, const tcaHandle *handle, uint64_t offset);

// notify.c: where notifications of this process arrive, empty. tcaErrorNoMemory, tcaErrorIO.
int tca_inbox_make(struct tca_context *context);
// Where this process's board writes a notification to the handle's node: a window address, or an own bus address.
uint64_t tca_slot_address(const struct tca_context *context, const tcaHandle *handle, uint32_t slot, bool board);
// The word.
static inline uint64_t tca_notification(uint32_t tag)
{
    return UINT64_C(0x5443416e) << 32 | tag; // never 0, so that an empty slot matches no tag
}

// What a channel runs is neither changed nor freed. tcaErrorArgument (no descriptor of the process's), tcaErrorBusy.
int tca_desc_check(struct tca_context *context, const char *call, const tcaDesc *desc);
// desc.c: a copy whose rows, flags and tag are given gets its places, or is refused.
int tca_copy_place(struct tca_context *context, const char *call, struct tca_copy *copy, const tcaHandle *dst,
                   uint64_t dst_offset, const tcaHandle *src, uint64_t src_offset, int wait_slot);
// At the end of a descriptor that is the process's and does not run.
int tca_desc_add(tcaDesc *desc, const char *call, const struct tca_copy *copy);
void tca_desc_release(tcaDesc *desc); // what tcaDescSet built
bool tca_desc_is_set(const tcaDesc *desc, unsigned channel);
bool tca_desc_is_running(const tcaDesc *desc);
void tca_descs_free(struct tca_context *context);  // the heap's part alone
void tca_tables_free(struct tca_context *context); // table.c; the heap's part alone
// chain.c: writes the chain. The descriptor has none.
int tca_desc_build(tcaDesc *desc, const char *call);

// dma.c: tcaDescSet by the name of the call that is to be refused.
int tca_desc_set(struct tca_context *context, const char *call, tcaDesc *desc, int channel);
#define TCA_DURATION_MAX 32
// "1 s", "1500 us": in the largest unit in which it is whole.
const char *tca_duration_text(uint64_t ns, char text[TCA_DURATION_MAX]);
// Whether a channel still runs after a moment.
bool tca_channel_is_running(struct tca_context *context, unsigned channel);

// --- the environment ------------------------------------------------------------------------------------------------

// A function of environments that have ranks of their own (MPI's), for programs that never call tcaSetComm. False:
// there are none now.
__attribute__((weak)) bool tca_comm_of_environment(struct tcaComm *comm_out);
// And theirs for a list that is shorter than the world: what the first `givers` ranks give reaches every rank that
// calls; ranks behind them may or may not. Returns 0 or a negative errno.
__attribute__((weak)) int tca_gather_of_environment(const void *mine, void *all, size_t bytes, int givers);
