// A GPU: an endpoint with device memory, a window onto it, copy engines and a compute unit.
//
// Models: sparse device memory; BAR 1, onto which pages of device memory are pinned as by GPUDirect RDMA; accesses
// through it as TLPs, with the latency of the memory and of its L2 cache, and a bounded number of reads in progress;
// copy engines that move data by TLPs of their own (reads with tags, writes, and a read of no bytes after them so that a
// finished copy is visible); a compute unit; work queues. Leaves out: costs of the CUDA runtime and driver (a library
// adds them), what kernels and copy engines do to the L2 cache and its coherence with others, misses of the window's
// address translation, BAR 0, interrupts, completion timeouts (the root complex answers every read, and the GPU is
// notified when the link goes down), concurrent kernels.
//
// Ordering: writes through the window become visible in order of arrival; a read sees every write that arrived before
// it, and reads are answered in order. Work that begins sees every write that arrived before it, as GPUDirect RDMA
// requires for copies and kernels that are launched after a completed transfer.
//
// Units: bytes, picoseconds; device addresses start at 0, and no buffer has address 0. Ownership: the simulation, the
// pool, and the link outlive the GPU.
#pragma once

#include "models/pcie/link.h"
#include "sim/kernel/sim.h"
#include "sim/kernel/thread.h"

typedef struct gpu gpu_t;
typedef struct gpu_queue gpu_queue_t;

#define GPU_PAGE_BYTES    65536ull // of the window, and of allocations (GPUDirect RDMA documentation)
#define GPU_L2_UNIT_BYTES 64u      // a line of a root complex; the cache fills sectors of 32 B (profiler guide)
#define GPU_L2_SET_BYTES  1024u    // assumption: 16 ways
// The size of the whole pages that hold so many bytes.
static inline uint64_t gpu_pages_bytes(uint64_t bytes)
{
    return (bytes + GPU_PAGE_BYTES - 1) & ~(GPU_PAGE_BYTES - 1);
}

struct gpu_config {
    uint64_t memory_bytes; // a multiple of a page
    uint64_t bar_bytes;    // a multiple of a page
    uint16_t requester_id;
    // Accesses through the window.
    uint64_t write_ps;         // from arrival to visible
    uint64_t read_ps;          // from its turn to the first completion, out of the L2 cache
    uint32_t reads_max;        // reads in progress; others wait in order
    uint32_t mps_bytes;        // of completions and of the copy engines' writes
    uint32_t completion_bytes; // completions except the last end at multiples of it: 64 or 128
    // L2 cache, for what goes through the window: reads and writes bring in units of GPU_L2_UNIT_BYTES, of a set the one
    // used least recently leaves.
    uint32_t l2_bytes;   // a multiple of a set
    uint64_t l2_miss_ps; // a read of what is not there takes so much longer
    // Copy engines.
    uint32_t copy_engines;   // 1, or 2: one each direction
    uint64_t copy_setup_ps;  // of each copy over the bus, before its first TLP
    uint32_t mrrs_bytes;     // of the engines' reads
    uint32_t copy_reads_max; // outstanding (up to 255)
    // Compute unit.
    uint64_t launch_ps;
    uint64_t memory_bytes_per_us; // of device memory: a copy inside reads and writes
    uint64_t flops_per_us;
    flow_net_t *flows; // of long copies over the bus; NULL: everything is packets
};

// name is copied; counters are registered under it. SIM_ERR_INVALID: a size is not the required multiple or power of
// two.
enum sim_status gpu_create(sim_t *sim, pcie_pool_t *pool, const char *name, const struct gpu_config *config,
                           gpu_t **gpu_out);
void gpu_destroy(gpu_t *gpu); // with its queues; unfinished work is dropped
// Becomes the owner of the link's end. The window is bar_bytes from bar_base on; the caller adds it to a root complex.
void gpu_connect(gpu_t *gpu, pcie_end_t *end, uint64_t bar_base);
const char *gpu_name(const gpu_t *gpu);
const struct gpu_config *gpu_get_config(const gpu_t *gpu);
uint64_t gpu_bar_base(const gpu_t *gpu);

// --- device memory ---------------------------------------------------------------------------------------------------

// Whole pages of 64 KB, zeroed, the lowest free ones: no page belongs to two allocations, so that freeing one never
// unmaps another. SIM_ERR_NO_MEMORY: no gap is large enough. SIM_ERR_INVALID: 0 bytes.
enum sim_status gpu_memory_alloc(gpu_t *gpu, uint64_t bytes, uint64_t *address_out);
// SIM_ERR_NOT_FOUND: no allocation begins there. SIM_ERR_BUSY: it is pinned, or queued work uses it; nothing changes.
// (A driver revokes the pins first, as GPUDirect RDMA's free callback does.)
enum sim_status gpu_memory_free(gpu_t *gpu, uint64_t address);
uint64_t gpu_memory_free_bytes(const gpu_t *gpu); // in whole pages that are not allocated
// The simulator's own pointer to a range inside one allocation, else NULL.
void *gpu_memory_at(gpu_t *gpu, uint64_t address, uint64_t bytes);
// From now on the allocation's memory, with its contents, is the file's, which other processes may map: whole pages
// from the file's first byte on. Until it is freed. SIM_ERR_NOT_FOUND: no allocation begins there. SIM_ERR_NO_MEMORY.
enum sim_status gpu_memory_share(gpu_t *gpu, uint64_t address, int fd);
// The allocation that holds an address. false: none.
bool gpu_memory_find(const gpu_t *gpu, uint64_t address, uint64_t *base_out, uint64_t *bytes_out);
// Sleeps the calling thread until a write through the window or by an engine touches the 8 bytes at address (a multiple
// of 8, in an allocation), or until deadline_ps: false. reason: what a message names as the thread's wait; NULL: the
// write.
bool gpu_memory_wait_write(gpu_t *gpu, uint64_t address, uint64_t deadline_ps, const struct sim_wait_reason *reason);

// --- the window ------------------------------------------------------------------------------------------------------

// Maps the pages of [address, address + bytes) in order into the window, at the lowest gap. Every pin is a mapping of
// its own: the same pages may be pinned several times. SIM_ERR_INVALID: address is no multiple of a page, or 0 bytes.
// SIM_ERR_NOT_FOUND: not allocated. SIM_ERR_RANGE: beyond the allocation's last page. SIM_ERR_NO_MEMORY: the window has
// no gap of that size.
enum sim_status gpu_pin(gpu_t *gpu, uint64_t address, uint64_t bytes, uint64_t *bar_offset_out);
// At once: accesses in flight find no page and are Unsupported Requests. SIM_ERR_NOT_FOUND: no pin begins there.
enum sim_status gpu_unpin(gpu_t *gpu, uint64_t bar_offset);

// A fault: all pages leave the window at once, though their pins remain until they are unpinned.
void gpu_window_end(gpu_t *gpu);

// --- work queues -----------------------------------------------------------------------------------------------------

enum gpu_work_kind {
    GPU_WORK_COPY_IN,  // bus to device: memory reads by a copy engine
    GPU_WORK_COPY_OUT, // device to bus (host memory, another GPU's window, any target): memory writes by a copy engine
    GPU_WORK_COPY,     // inside device memory, by the compute unit, as a kernel; ranges may overlap
    GPU_WORK_FILL,     // the same
    GPU_WORK_KERNEL,   // launch_ps, then the longest of duration_ps, bytes and flops at the GPU's rates
    GPU_WORK_MARK,     // takes no time
    GPU_WORK_WAIT,     // until `queue` has finished its item number `item`
};

// done: never called from inside gpu_queue_submit; it may submit. SIM_ERR_FAULT: a read was answered with an error or
// the link went down; parts may have been copied. A COPY_OUT also fails if its last address accepts no read.
typedef void (*gpu_work_fn)(void *ctx, enum sim_status status);

struct gpu_work {
    enum gpu_work_kind kind;
    uint64_t bus_address; // COPY_IN from, COPY_OUT to
    uint64_t source;      // device address: COPY, COPY_OUT
    uint64_t destination; // device address: COPY, COPY_IN, FILL
    uint64_t bytes;       // copied or filled; KERNEL: its traffic to and from device memory
    uint8_t fill;
    uint64_t flops, duration_ps; // KERNEL
    // KERNEL: called when its time is over, before the next item of the queue; takes no time, and may write to device
    // memory. NULL: it computes nothing.
    void (*effect)(void *ctx);
    void *effect_ctx;
    gpu_queue_t *queue; // WAIT: of this or another GPU
    uint64_t item;
    gpu_work_fn done; // may be NULL
    void *ctx;
};

// Items of a queue run one after the other; queues share the engines, first come first served.
enum sim_status gpu_queue_create(gpu_t *gpu, gpu_queue_t **queue_out);
// SIM_ERR_BUSY: it has work, or a done() of one of its items is running.
enum sim_status gpu_queue_destroy(gpu_queue_t *queue);
// Numbers items from 1 on. SIM_ERR_RANGE: a device range is not inside one allocation. SIM_ERR_INVALID: 0 bytes, a copy
// over the bus of a GPU without a link, a wait for an item that was never submitted.
enum sim_status gpu_queue_submit(gpu_queue_t *queue, const struct gpu_work *work, uint64_t *item_out);
uint64_t gpu_queue_submitted(const gpu_queue_t *queue); // number of the latest item, 0: none
uint64_t gpu_queue_done(const gpu_queue_t *queue);      // items up to this one are finished
