// The interface between the software that a user links and the machine that it runs on.
//
// All code in verbs-shim reaches devices and time only through this table, so the same code runs on simulated devices
// in one process (sim/platform), in an attached process, and on the real driver. On real hardware `cost` does nothing,
// `wait_word` is a polling loop, and the writes are stores to mmap'ed BARs.
//
// A backend belongs to one process of one node's program: to the program's one thread, and to the threads that
// libraries start with backend_thread_ops. Threads of libraries may call everything except the GPU operations.
// Functions that fail return a negative errno value.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs-shim/backend/journal.h"

// The BARs of the board, the memory windows of the node's GPUs, the BAR of the HCA, and those of other devices, whose
// drivers get their numbers when they are opened.
enum backend_bar {
    BACKEND_BAR_REGISTERS,
    BACKEND_BAR_WINDOW,
    BACKEND_BAR_GPU0,
    BACKEND_BAR_GPU1,
    BACKEND_BAR_GPU2,
    BACKEND_BAR_GPU3,
    BACKEND_BAR_HCA_UAR, // the HCA's doorbells and BlueFlame buffers (models/hca/abi/hca_abi.h)
    BACKEND_BAR_DEVICE0,
    BACKEND_BARS = BACKEND_BAR_DEVICE0 + 8
};

#define BACKEND_GPUS_MAX 4

// Work of the program itself that takes processor time.
enum backend_cost {
    BACKEND_COST_CALL,        // entry and exit of a library call; amount: calls
    BACKEND_COST_LOAD_STORE,  // cached accesses of up to 8 B; amount: accesses
    BACKEND_COST_DEVICE_LINE, // the core fetches a cache line that a device wrote or read last; amount: lines
    BACKEND_COST_LOCK,        // an uncontended lock is acquired and released; amount: locks
    BACKEND_COST_COPY,        // memcpy in host memory; amount: bytes
    BACKEND_COST_INTERRUPT,   // from a device's message to the thread that waits for it; amount: interrupts
    BACKEND_COST_TIME         // a declared time of a library or driver; amount: nanoseconds
};

// Pinned host memory that a board can reach.
struct backend_buffer {
    void *address;        // for the program
    uint64_t bus_address; // for devices of the same node
    size_t bytes;
};

// --- GPUs -----------------------------------------------------------------------------------------------------------
// What the kernel driver of a GPU offers to the libraries above it. A device address is an offset in one GPU's memory.

struct backend_gpu_info {
    char name[64];
    uint64_t memory_bytes, bar_bytes;
    uint64_t memory_free_bytes; // free now, with the memory of all processes counted
    uint32_t pci_bus;           // as cudaDeviceGetPCIBusId prints it
    uint32_t socket;            // of the processor to whose root port the GPU is connected
    uint32_t copy_engines;
    // Time of the driver's part of a call, in addition to the GPU's own time. 0 on real hardware, where it passes by
    // itself.
    uint64_t copy_call_ns;   // a copy that the caller waits for
    uint64_t submit_call_ns; // an asynchronous call
    uint64_t manage_call_ns; // allocate, free, pin, unpin
    // Size of each of the driver's two bounce buffers, which it uses for memory that the GPU cannot reach. A multiple
    // of 4 KiB; 0: the driver refuses such copies.
    uint64_t staging_bytes;
};

enum backend_gpu_work_kind {
    BACKEND_GPU_TO_DEVICE, // from pinned host memory
    BACKEND_GPU_TO_HOST,   // to pinned host memory
    BACKEND_GPU_INSIDE,    // device memory to device memory
    BACKEND_GPU_TO_PEER,   // device memory to that of another GPU of the node, pinned in its window by the driver
    BACKEND_GPU_SET,       // fill with a byte
    BACKEND_GPU_KERNEL,
    BACKEND_GPU_MARK, // only marks a position in the queue: an event
    BACKEND_GPU_AFTER // the queue continues when the ticket of another queue, on any GPU of the node, has ended
};

// Device memory of one GPU as a kernel's function sees it. `at` returns NULL if the range is not inside one allocation.
struct backend_gpu_memory {
    void *(*at)(void *ctx, uint64_t device_address, uint64_t bytes);
    void *ctx;
};

// Rows of `bytes` each; the pitches are the distances between rows, and are ignored if there is one row.
struct backend_gpu_work {
    enum backend_gpu_work_kind kind;
    uint64_t device_address; // source or destination in the GPU that does the work
    uint64_t other_address;  // host bus address, or device address (of the peer)
    uint32_t peer;           // TO_PEER: the other GPU. AFTER: the GPU of the other queue
    uint64_t bytes, rows, device_pitch, other_pitch;
    uint8_t value;                // SET
    uint64_t duration_ns;         // KERNEL: the minimum,
    uint64_t memory_bytes, flops; // and at least what these take at the GPU's rates
    // KERNEL: computes the kernel's result when the kernel ends, before later work of the queue, in no simulated time.
    // Called once if submit succeeds, never from submit itself. memory NULL: the kernel never runs, and ctx may be
    // freed. effect NULL: the kernel computes nothing.
    void (*effect)(void *ctx, const struct backend_gpu_memory *memory);
    void *effect_ctx;
    uint32_t queue; // AFTER: the queue of the ticket
    uint64_t ticket;
};

struct backend_gpu_ops {
    unsigned (*count)(void *ctx);
    int (*info)(void *ctx, unsigned gpu, struct backend_gpu_info *info_out);
    // Aligned to 256 B. The contents are undefined on hardware and zero in the simulation. -ENOMEM.
    int (*alloc)(void *ctx, unsigned gpu, uint64_t bytes, uint64_t *device_address_out);
    int (*free)(void *ctx, unsigned gpu, uint64_t device_address); // -EINVAL; -EBUSY: part of it is pinned
    // GPUDirect RDMA: maps the 64 KB pages of the range into the GPU's window, contiguously. *offset_out is the
    // position of the range's first byte in the window (enum backend_bar), *bus_address_out its address for other
    // devices. -EINVAL, -ENOSPC.
    int (*pin)(void *ctx, unsigned gpu, uint64_t device_address, uint64_t bytes, uint64_t *offset_out,
               uint64_t *bus_address_out);
    int (*unpin)(void *ctx, unsigned gpu, uint64_t offset);
    // Queues run concurrently; the work of one queue runs in order. -ENOMEM.
    int (*queue_create)(void *ctx, unsigned gpu, uint32_t *queue_out);
    int (*queue_destroy)(void *ctx, unsigned gpu, uint32_t queue); // waits for its work
    // Rings the GPU's doorbell and returns, however much work is queued. The tickets of a queue increase. -EINVAL.
    int (*submit)(void *ctx, unsigned gpu, uint32_t queue, const struct backend_gpu_work *work, uint64_t *ticket_out);
    // 1: ended, 0: not yet. ended_ps: when a MARK ended on the GPU; NULL for other work. -EIO: this work or earlier
    // work of the queue failed.
    int (*poll)(void *ctx, unsigned gpu, uint32_t queue, uint64_t ticket, uint64_t *ended_ps_out);
    int (*wait)(void *ctx, unsigned gpu, uint32_t queue, uint64_t ticket);
};

// --- threads of libraries -------------------------------------------------------------------------------------------
// A library may have a thread of its own beside the program's, on a core of its own; on real hardware it is a pthread.
// The operations include a ticket lock (it is granted in the order of requests, so no thread starves) and a way to
// sleep until something may have changed.

enum backend_thread {
    BACKEND_THREAD_TCA_VERBS, // the progress thread of tca0
    BACKEND_THREAD_ACP,       // the communication thread of ACP
    BACKEND_THREADS
};

enum { BACKEND_LOCK_LOADS = 2, BACKEND_UNLOCK_LOADS = 1 }; // a ticket, the turn; the next turn

struct backend_thread_ops {
    // Runs run(arg) concurrently with the caller. -EBUSY: the thread runs already. -ENOMEM.
    int (*start)(void *ctx, enum backend_thread thread, void (*run)(void *arg), void *arg);
    // Called by the program: `pause` returns false in the thread, and the thread has ended when stop returns. The
    // environment calls it too when the program has ended.
    void (*stop)(void *ctx, enum backend_thread thread);
    // A number that changes with each wake, and may change when devices write. The caller reads it before it checks for
    // work, and passes it to pause if there was none: a change in between ends the pause at once.
    uint64_t (*changes)(void *ctx, enum backend_thread thread);
    // An iteration of a polling loop that found nothing to do, in the thread or in the program. It may return as late
    // as when wake was called since `seen` was read, when a device has written pinned memory of the process (only with
    // `devices`), or after max_ns (0: no such limit). On real hardware it relaxes the processor and returns. false: the
    // thread must end.
    bool (*pause)(void *ctx, enum backend_thread thread, uint64_t seen, bool devices, uint64_t max_ns);
    void (*wake)(void *ctx, enum backend_thread thread); // does nothing on real hardware
    // When it returns, the time that the caller declared (backend_ops.cost) has passed. Called before a store of a word
    // that another thread reads. Does nothing on real hardware, or where costs pass at once.
    void (*elapse)(void *ctx);
    // The lock; a free one costs BACKEND_LOCK_LOADS and BACKEND_UNLOCK_LOADS.
    bool (*is_locked)(void *ctx, enum backend_thread thread);
    void (*lock)(void *ctx, enum backend_thread thread);
    void (*unlock)(void *ctx, enum backend_thread thread);
};

struct hca_command;

struct backend_ops {
    const struct backend_thread_ops *thread;   // NULL: libraries have no threads
    const struct backend_gpu_ops *gpu;         // NULL, or a count of 0: the node has no GPU
    const struct backend_journal_ops *journal; // NULL: no journal is kept
    // A command of the HCA (models/hca/abi/commands.def), as its kernel driver takes it; outputs are in the command.
    // -EINVAL: a wrong number or operand. -ENOMEM: no more of these objects, or more than the node can pin. -EBUSY: in
    // use. -EIO: the HCA has failed. -EFAULT: the region is no memory of the program, or devices may write to it and
    // the program may not. NULL: the node has no HCA.
    int (*hca_command)(void *ctx, struct hca_command *command);
    // Claims the node's board for this process until the process has released it as often, or has ended: what open(2)
    // and close(2) of the driver's device do. -EBUSY: another process has claimed it. NULL: there is no other process.
    int (*board_claim)(void *ctx);
    void (*board_release)(void *ctx);
    // Page-aligned, zeroed. -ENOMEM, -EINVAL (0 bytes).
    int (*alloc_pinned)(void *ctx, size_t bytes, struct backend_buffer *buffer_out);
    void (*free_pinned)(void *ctx, struct backend_buffer *buffer);

    // Checks that the program may read these bytes, and write them if `writable`. -EFAULT: it may not. For libraries
    // whose processor copies what the board cannot reach.
    int (*memory_check)(void *ctx, const void *address, size_t bytes, bool writable);

    uint64_t (*bar_bytes)(void *ctx, enum backend_bar bar); // 0: the node has no such device
    uint64_t (*bar_bus_address)(void *ctx, enum backend_bar bar);

    // Stores through a write-combining mapping; they leave at the latest with the next fence. Any length and alignment.
    void (*write_combined)(void *ctx, enum backend_bar bar, uint64_t offset, const void *data, size_t bytes);
    void (*fence)(void *ctx);
    // Uncached accesses, naturally aligned, 4 or 8 bytes. A read without an answer gives all ones and -EIO.
    void (*write)(void *ctx, enum backend_bar bar, uint64_t offset, uint64_t value, unsigned bytes);
    int (*read)(void *ctx, enum backend_bar bar, uint64_t offset, unsigned bytes, uint64_t *value_out);

    // Streaming loads from a write-combining mapping: any length and alignment, several lines of 64 B outstanding at
    // once. -EIO: some of the reads had no answer; their bytes are all ones.
    int (*read_combined)(void *ctx, enum backend_bar bar, uint64_t offset, void *data, size_t bytes);

    // Waits until (*word & mask) == value, where word (a multiple of 8) is in a pinned buffer or in a registered region
    // of the process. -EINVAL: it is in neither. timeout_ns 0: forever. -ETIMEDOUT.
    int (*wait_word)(void *ctx, const volatile uint64_t *word, uint64_t mask, uint64_t value, uint64_t timeout_ns);

    // The program itself polled a word in pinned memory that a device writes; found: it saw what it waits for. Takes no
    // time. Used to break a latency down into its causes. NULL: this is not recorded.
    void (*polled)(void *ctx, const volatile void *word, bool found);
    // The library has left something in a word of the program's own memory, which any thread of it may find with
    // `polled`. Takes no time. May be NULL.
    void (*left)(void *ctx, const volatile void *word);

    // Device writes to this part of a pinned buffer need no reaction by themselves: a word that is written after them
    // notifies. Until the buffer is freed, they do not wake a thread that waits for any device write. NULL: device
    // writes wake no thread.
    void (*ignore_writes)(void *ctx, const void *address, size_t bytes);

    // Device writes to this part of a pinned buffer are work for the library, even while no thread of the program polls
    // for them: until the buffer is freed, a thread that waits for a file descriptor polls for the library. NULL: no
    // thread does so.
    void (*event_writes)(void *ctx, const void *address, size_t bytes);
    // The library begins to look at all of these parts. NULL: nobody wants to know.
    void (*event_writes_seen)(void *ctx);

    // The time stamp counter, in picoseconds; reading it costs time.
    uint64_t (*time_ps)(void *ctx);
    // The same without the time that it costs: for deadlines of a loop that would read the counter in few of its iterations.
    uint64_t (*deadline_ps)(void *ctx);
    void (*cost)(void *ctx, enum backend_cost kind, uint64_t amount);
};

struct backend {
    const struct backend_ops *ops;
    void *ctx;
};

static inline int backend_board_claim(const struct backend *backend)
{
    return backend->ops->board_claim != NULL ? backend->ops->board_claim(backend->ctx) : 0;
}

static inline void backend_board_release(const struct backend *backend)
{
    if (backend->ops->board_release != NULL) {
        backend->ops->board_release(backend->ctx);
    }
}

static inline void backend_left(const struct backend *backend, const volatile void *word)
{
    if (backend->ops->left != NULL) {
        backend->ops->left(backend->ctx, word);
    }
}

static inline void backend_polled(const struct backend *backend, const volatile void *word, bool found)
{
    if (backend->ops->polled != NULL) {
        backend->ops->polled(backend->ctx, word, found);
    }
}

enum {
    BACKEND_LIBRARY_TCA,
    BACKEND_LIBRARY_CUDA,
    BACKEND_LIBRARY_GDR,
    BACKEND_LIBRARY_IBVERBS,
    BACKEND_LIBRARY_ACP,
    BACKEND_LIBRARIES
};

// Peer memory: memory of another device that a library of the program manages (on real hardware: nv_peer_mem).
// Libraries that register memory reach it in this way, without knowing which device it belongs to.
struct backend_peer_memory {
    bool (*owns)(const void *address); // is it memory of that kind?
    // Opens a window onto it; *bus_address_out is where devices of the node reach the first byte. -EINVAL: the bytes
    // are not in one allocation of such memory. -ENOSPC: the device's window is full. -ENOMEM, -EIO.
    int (*pin)(const void *address, size_t bytes, void **pin_out, uint64_t *bus_address_out);
    void (*unpin)(void *pin);
};

// A program's process as its environment knows it. Libraries keep their state of a process here, so that several
// simulated processes may share one operating-system process.
struct backend_process {
    struct backend backend;
    struct peach2_board_handle *board;             // the node's board, opened by the environment; NULL: none
    uint32_t number;                               // unique among the processes of the node, like a process id
    const struct backend_peer_memory *peer_memory; // of the library that manages peer memory; NULL: none does
    // One for each library that keeps state; NULL before its first use.
    struct backend_library {
        void *state;
        void (*release)(void *state); // called by the environment after the process's last instruction
    } libraries[BACKEND_LIBRARIES];
};

// The calling process; the environment implements this function. In one process with simulated threads it is the
// process of the calling thread, on real hardware the only one. NULL: the caller belongs to no such process.
struct backend_process *backend_current(void);
