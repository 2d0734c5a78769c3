// The border between the software a user links and the machine it runs on.
//
// Everything in verbs-shim reaches devices and time through this table alone, so that the same code runs on simulated
// devices in one process (sim/platform), in an attached process, and on the real driver. On real hardware `cost` is
// empty, `wait_word` is a polling loop, and the writes are stores to mmap'ed BARs.
//
// A backend belongs to one process of one node's program: to its one thread, and to those that libraries start with
// backend_thread_ops, which may call everything but GPUs. Functions that fail return a negative errno value.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs-shim/backend/journal.h"

// The board's two, the memory windows of the node's GPUs, the HCA's, and those of its other devices, whose drivers are
// told theirs when they are opened.
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

// Work of the program itself that takes time on a processor. Empty on real hardware.
enum backend_cost {
    BACKEND_COST_CALL,        // entry and exit of a library call; amount: calls
    BACKEND_COST_LOAD_STORE,  // cached accesses of up to 8 B; amount: accesses
    BACKEND_COST_DEVICE_LINE, // a cache line that a device wrote or read last comes to the core; amount: lines
    BACKEND_COST_LOCK,        // a lock that nobody else wants, taken and left; amount: locks
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
// What the kernel driver of a GPU offers to the libraries above it. A device address is a GPU's own, from 0 on.

struct backend_gpu_info {
    char name[64];
    uint64_t memory_bytes, bar_bytes;
    uint64_t memory_free_bytes; // now, whoever has the rest
    uint32_t pci_bus;           // as cudaDeviceGetPCIBusId prints it
    uint32_t socket;            // of the processor whose root port it sits behind
    uint32_t copy_engines;
    // What the driver's part of a call takes, beside the GPU's own time. 0 on real hardware, where it just passes.
    uint64_t copy_call_ns;   // a copy that the caller waits for
    uint64_t submit_call_ns; // anything asynchronous
    uint64_t manage_call_ns; // allocation, pinning and their ends
    // Of each of the driver's two bounce buffers, through which it copies what the GPU cannot reach. A multiple of
    // 4 KiB; 0: it refuses such copies.
    uint64_t staging_bytes;
};

enum backend_gpu_work_kind {
    BACKEND_GPU_TO_DEVICE, // from pinned host memory
    BACKEND_GPU_TO_HOST,   // to pinned host memory
    BACKEND_GPU_INSIDE,    // device memory to device memory
    BACKEND_GPU_TO_PEER,   // device memory to that of another GPU of the node, pinned in its window by the driver
    BACKEND_GPU_SET,       // fill with a byte
    BACKEND_GPU_KERNEL,
    BACKEND_GPU_MARK, // nothing but a place in the queue: an event
    BACKEND_GPU_AFTER // the queue goes on when the ticket of another queue, of any GPU of the node, has ended
};

// Device memory of one GPU as a kernel's function sees it. at: NULL: the range is not inside one allocation.
struct backend_gpu_memory {
    void *(*at)(void *ctx, uint64_t device_address, uint64_t bytes);
    void *ctx;
};

// Rows of `bytes`, pitches apart; one row: pitches count for nothing.
struct backend_gpu_work {
    enum backend_gpu_work_kind kind;
    uint64_t device_address; // source or destination in the GPU that does the work
    uint64_t other_address;  // host bus address, or device address (of the peer)
    uint32_t peer;           // TO_PEER: the other GPU. AFTER: the GPU of the other queue
    uint64_t bytes, rows, device_pitch, other_pitch;
    uint8_t value;                // SET
    uint64_t duration_ns;         // KERNEL: at least so long,
    uint64_t memory_bytes, flops; // and as long as these take at the GPU's rates
    // KERNEL: what it computes, in no time, when it ends and before what is behind it in the queue. Called once: memory
    // NULL: the kernel never runs, and ctx may go. Not from submit, and not where submit fails. NULL: nothing.
    void (*effect)(void *ctx, const struct backend_gpu_memory *memory);
    void *effect_ctx;
    uint32_t queue; // AFTER: whose ticket
    uint64_t ticket;
};

struct backend_gpu_ops {
    unsigned (*count)(void *ctx);
    int (*info)(void *ctx, unsigned gpu, struct backend_gpu_info *info_out);
    // Aligned to 256 B; what it holds is undefined on hardware and zero in the simulation. -ENOMEM.
    int (*alloc)(void *ctx, unsigned gpu, uint64_t bytes, uint64_t *device_address_out);
    int (*free)(void *ctx, unsigned gpu, uint64_t device_address); // -EINVAL; -EBUSY: bytes of it are pinned
    // GPUDirect RDMA: maps the 64 KB pages of the range into the GPU's window, contiguously. offset: of the range's
    // first byte in the window (enum backend_bar); bus_address: the same for other devices. -EINVAL, -ENOSPC.
    int (*pin)(void *ctx, unsigned gpu, uint64_t device_address, uint64_t bytes, uint64_t *offset_out,
               uint64_t *bus_address_out);
    int (*unpin)(void *ctx, unsigned gpu, uint64_t offset);
    // Queues run side by side, the work of one in order. -ENOMEM.
    int (*queue_create)(void *ctx, unsigned gpu, uint32_t *queue_out);
    int (*queue_destroy)(void *ctx, unsigned gpu, uint32_t queue); // waits for its work
    // Rings the GPU's doorbell and returns, however much waits already; tickets of a queue grow. -EINVAL.
    int (*submit)(void *ctx, unsigned gpu, uint32_t queue, const struct backend_gpu_work *work, uint64_t *ticket_out);
    // 1: ended, 0: not yet. ended_ps: when a MARK ended on the GPU; NULL for other work. -EIO: it or something before
    // it in the queue failed.
    int (*poll)(void *ctx, unsigned gpu, uint32_t queue, uint64_t ticket, uint64_t *ended_ps_out);
    int (*wait)(void *ctx, unsigned gpu, uint32_t queue, uint64_t ticket);
};

// --- threads of libraries -------------------------------------------------------------------------------------------
// A library may have a thread of its own beside the program's, on a core of its own: on the machine a pthread. With it
// come a lock that is handed on in the order of asking (a ticket lock, so that no thread starves) and a way to sleep
// until something may have changed.

enum backend_thread {
    BACKEND_THREAD_TCA_VERBS, // progress of tca0
    BACKEND_THREAD_ACP,       // communication thread of ACP
    BACKEND_THREADS
};

struct backend_thread_ops {
    // Runs run(arg) beside the caller. -EBUSY: it runs already. -ENOMEM.
    int (*start)(void *ctx, enum backend_thread thread, void (*run)(void *arg), void *arg);
    // By the program: pause tells the thread to end, and it has ended when this returns. Also done by the environment
    // when the program has ended.
    void (*stop)(void *ctx, enum backend_thread thread);
    // A number that changes with each wake, and may change with what devices write. Read before one looks for work,
    // given to pause when there was none: what came in between ends the pause at once.
    uint64_t (*changes)(void *ctx, enum backend_thread thread);
    // A turn of a loop that found nothing to do, by the thread or by the program beside it. It may return as late as
    // when wake was called since `seen` was read, with `devices` also when a device has written pinned memory of the
    // process, or after max_ns; 0: without that limit. On the machine it relaxes the processor and returns. false: the thread is to
    // end.
    bool (*pause)(void *ctx, enum backend_thread thread, uint64_t seen, bool devices, uint64_t max_ns);
    void (*wake)(void *ctx, enum backend_thread thread); // nothing on the machine
    // What the caller has paid for (backend_ops.cost) has passed when it returns: for who then stores a word that
    // another thread reads. Nothing on the machine, and where costs pass at once.
    void (*elapse)(void *ctx);
    void (*lock)(void *ctx, enum backend_thread thread);
    void (*unlock)(void *ctx, enum backend_thread thread);
};

struct hca_command;

struct backend_ops {
    const struct backend_thread_ops *thread;   // NULL: libraries have no threads
    const struct backend_gpu_ops *gpu;         // NULL, or a count of 0: the node has no GPU
    const struct backend_journal_ops *journal; // NULL: nobody listens
    // A command of the HCA (models/hca/abi/commands.def), as its kernel driver takes it; outputs are in the command.
    // -EINVAL: a wrong number or operand. -ENOMEM: no more of these objects, or more than the node can pin. -EBUSY: in
    // use. -EIO: the HCA is gone. -EFAULT: a region of no memory, or devices may write to it and the program may not.
    // NULL: the node has no HCA.
    int (*hca_command)(void *ctx, struct hca_command *command);
    // The node's board is the process's alone until it has released it as often, or ended: what open(2) and close(2) of
    // the driver's device do. -EBUSY: another process has it. NULL: there is no other process.
    int (*board_claim)(void *ctx);
    void (*board_release)(void *ctx);
    // Page-aligned, zeroed. -ENOMEM, -EINVAL (0 bytes).
    int (*alloc_pinned)(void *ctx, size_t bytes, struct backend_buffer *buffer_out);
    void (*free_pinned)(void *ctx, struct backend_buffer *buffer);

    // Has the program these bytes, to be read, and to be written if that is asked for? -EFAULT. For libraries whose
    // processor copies what no board reaches.
    int (*memory_check)(void *ctx, const void *address, size_t bytes, bool writable);

    uint64_t (*bar_bytes)(void *ctx, enum backend_bar bar); // 0: the node has no such device
    uint64_t (*bar_bus_address)(void *ctx, enum backend_bar bar);

    // Stores through a write-combining mapping; they leave at the latest with the next fence. Any length and alignment.
    void (*write_combined)(void *ctx, enum backend_bar bar, uint64_t offset, const void *data, size_t bytes);
    void (*fence)(void *ctx);
    // Uncached accesses, naturally aligned, 4 or 8 bytes. A read that nobody answers gives all ones and -EIO.
    void (*write)(void *ctx, enum backend_bar bar, uint64_t offset, uint64_t value, unsigned bytes);
    int (*read)(void *ctx, enum backend_bar bar, uint64_t offset, unsigned bytes, uint64_t *value_out);

    // Streaming loads from a write-combining mapping: any length and alignment, several lines of 64 B under way at
    // once. -EIO: part of it was not answered and is all ones.
    int (*read_combined)(void *ctx, enum backend_bar bar, uint64_t offset, void *data, size_t bytes);

    // Waits until (*word & mask) == value, where word (a multiple of 8) lies in a pinned buffer or in a registered
    // region of the process. -EINVAL: it does not. timeout_ns 0: forever. -ETIMEDOUT.
    int (*wait_word)(void *ctx, const volatile uint64_t *word, uint64_t mask, uint64_t value, uint64_t timeout_ns);

    // The program looked by itself at a word in pinned memory that a device writes; found: what it saw there lets it go
    // on. Takes no time; for who asks what a latency consists of. NULL: nobody does.
    void (*looked)(void *ctx, const volatile void *word, bool found);

    // What devices write to this part of a pinned buffer is no news by itself: a word that is written behind it tells.
    // Until the buffer is freed, who waits for whatever comes is not woken for it. NULL: nobody is.
    void (*quiet)(void *ctx, const void *address, size_t bytes);

    // What devices write to this part of a pinned buffer is work for the library, also where no thread of the program
    // looks for it: until the buffer is freed, a thread that waits for a descriptor looks in the library's place. NULL:
    // nobody does.
    void (*news)(void *ctx, const void *address, size_t bytes);

    // The time stamp counter, in picoseconds; reading it costs time.
    uint64_t (*time_ps)(void *ctx);
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

static inline void backend_looked(const struct backend *backend, const volatile void *word, bool found)
{
    if (backend->ops->looked != NULL) {
        backend->ops->looked(backend->ctx, word, found);
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

// Memory of the program's that a library has put into the window of another device (on the machine nv_peer_mem): how
// libraries that register memory reach it without knowing whose it is.
struct backend_peer_memory {
    bool (*owns)(const void *address); // is it memory of that kind?
    // Opens a window onto it: where devices of the node reach the first byte. -EINVAL: the bytes do not lie in one piece
    // of such memory. -ENOSPC: the device's window is full. -ENOMEM, -EIO.
    int (*pin)(const void *address, size_t bytes, void **pin_out, uint64_t *bus_address_out);
    void (*unpin)(void *pin);
};

// A program's process as its environment knows it. Libraries that keep state for a process hang it here, so that
// several simulated processes may live in one.
struct backend_process {
    struct backend backend;
    struct peach2_board_handle *board;             // the node's board, opened by the environment; NULL: none
    uint32_t number;                               // no other process of the node has it, as a process id
    const struct backend_peer_memory *peer_memory; // of the library that has any; NULL: there is none
    // One for each library that keeps state; NULL before its first use.
    struct backend_library {
        void *state;
        void (*release)(void *state); // called by the environment after the process's last instruction
    } libraries[BACKEND_LIBRARIES];
};

// The calling process: a function of the environment. In one process of simulated threads that of the calling thread,
// on real hardware the only one. NULL: the caller is no such process.
struct backend_process *backend_current(void);
