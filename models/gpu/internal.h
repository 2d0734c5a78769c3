// What the files of the GPU share: gpu.c (creation, arrival), memory.c, window.c, l2.c, target.c, egress.c, copy.c,
// compute.c, unit.c, queue.c. Internal to models/gpu.
#pragma once

#include "models/gpu/fifo.h"
#include "models/pcie/egress.h"
#include "models/pcie/tags.h"
#include "models/gpu/gpu.h"
#include "sim/kernel/counter.h"
#include "sim/kernel/trace.h"

enum { GPU_NAME_MAX = 64 };

enum gpu_counter {
    GPU_BAR_WRITES,
    GPU_BAR_WRITE_BYTES,
    GPU_BAR_READS,
    GPU_BAR_READ_BYTES,
    GPU_UNSUPPORTED_WRITES,
    GPU_UNSUPPORTED_READS,
    GPU_L2_MISSES,
    GPU_COPY_READS,
    GPU_COPY_READ_BYTES,
    GPU_COPY_WRITES,
    GPU_COPY_WRITE_BYTES,
    GPU_UNEXPECTED_COMPLETIONS,
    GPU_WORK_ITEMS,
    GPU_WORK_FAULTS,
    GPU_COUNTERS
};

// --- memory ---------------------------------------------------------------------------------------------------------

struct gpu_allocation {
    uint64_t base, bytes;        // as requested; it owns whole pages
    uint32_t uses;               // pins, and items in queues
    bool shared;                 // its memory belongs to a file
    struct gpu_allocation *next; // by address
};

struct gpu_waiter; // memory.c

struct gpu_allocation *gpu_memory_holder(const gpu_t *gpu, uint64_t address, uint64_t bytes); // NULL: not inside one
void gpu_memory_store(gpu_t *gpu, uint64_t address, const void *data, uint64_t bytes);        // and wakes waiters
// Zeros use no memory of the simulating machine.
void gpu_memory_fill(gpu_t *gpu, uint64_t address, uint8_t value, uint64_t bytes);
void gpu_memory_touched(gpu_t *gpu, uint64_t address, uint64_t bytes); // wakes waiters

// --- window ---------------------------------------------------------------------------------------------------------

struct gpu_pin {
    uint64_t offset, bytes; // in the window, whole pages
    struct gpu_allocation *allocation;
    struct gpu_pin *next; // by offset
};

// false: nothing is pinned at this address.
bool gpu_window_find(const gpu_t *gpu, uint64_t bus_address, uint64_t *device_address_out);

// --- L2 cache -------------------------------------------------------------------------------------------------------

enum sim_status gpu_l2_init(gpu_t *gpu); // SIM_ERR_NO_MEMORY
void gpu_l2_fini(gpu_t *gpu);
// The range is in device memory, and in the cache afterwards. Returns how many of its units were not.
uint64_t gpu_l2_touch(gpu_t *gpu, uint64_t address, uint64_t bytes);
// For streams: how many units of a range of the window would not be there when it is their turn, one after the other.
uint64_t gpu_l2_misses(const gpu_t *gpu, uint64_t bus_address, uint64_t bytes);

// stream.c, of struct pcie_end_ops
void gpu_writes_on(void *ctx, pcie_end_t *end, struct flow_path *path, uint64_t address, uint64_t bytes);
void gpu_reads_from(void *ctx, pcie_end_t *end, struct flow_path *path, uint64_t address, uint64_t bytes);

// --- engines --------------------------------------------------------------------------------------------------------

enum gpu_unit_kind { GPU_UNIT_IN, GPU_UNIT_OUT, GPU_UNIT_COMPUTE, GPU_UNIT_COUNT };

struct gpu_item {
    struct gpu_work work;
    gpu_queue_t *queue;
    uint64_t number;
    bool started;
    struct gpu_allocation *uses[2];
    struct gpu_item *next;      // of its queue
    struct gpu_item *next_unit; // waiting for the same unit, or for the same queue
};

struct gpu_unit {
    gpu_t *gpu;
    struct gpu_item *item; // in progress
    struct gpu_item *waiting, **waiting_end;
    sim_event_t begin_event, end_event;
    enum sim_status status;
    // copies over the bus
    uint64_t done_bytes; // requested, or written
    flow_stream_t *flow; // carries a part of it meanwhile; NULL: none
    uint32_t outstanding;
    bool moving;   // set up and not finished
    bool settling; // waits for earlier writes
};

struct gpu_queue {
    gpu_t *gpu;
    struct gpu_item *items, **items_end; // the first one is in progress
    uint64_t submitted, done;
    struct gpu_item *waiters; // items of any queue
    sim_event_t event;
    bool reporting;
    gpu_queue_t *next;
};

void gpu_unit_init(gpu_t *gpu, enum gpu_unit_kind kind);
void gpu_unit_fini(struct gpu_unit *unit);
void gpu_unit_submit(gpu_t *gpu, struct gpu_item *item);
void gpu_unit_end(struct gpu_unit *unit, uint64_t delay_ps); // ends its item with unit->status
void gpu_copy_init(gpu_t *gpu);
void gpu_copy_begin(struct gpu_unit *unit);
void gpu_copy_go_on(gpu_t *gpu); // there is room to send
void gpu_copy_complete(gpu_t *gpu, pcie_tlp_t *completion);
void gpu_copy_down(gpu_t *gpu);
void gpu_copy_stream_begin(struct gpu_unit *unit);          // if the copy is one for a stream
void gpu_copy_stream_end(struct gpu_unit *unit, bool keep); // early; keep: what has been carried is copied
uint64_t gpu_compute_ps(const gpu_t *gpu, const struct gpu_work *work);
void gpu_compute_apply(gpu_t *gpu, const struct gpu_work *work);
void gpu_item_done(struct gpu_item *item, enum sim_status status); // frees it
void gpu_queue_fini(gpu_queue_t *queue);

// --- target and egress ----------------------------------------------------------------------------------------------

void gpu_target_init(gpu_t *gpu);
void gpu_target_fini(gpu_t *gpu);
void gpu_target_receive(gpu_t *gpu, pcie_tlp_t *tlp);
// Time until every write that has arrived at the window is visible.
uint64_t gpu_target_pending_ps(const gpu_t *gpu);
void gpu_target_settle(gpu_t *gpu);    // handles what is due at this instant; keeps the caller's cause
void gpu_target_read_left(gpu_t *gpu); // the last completion of a read was taken by the link

void gpu_egress_init(gpu_t *gpu);
void gpu_egress_push(gpu_t *gpu, pcie_tlp_t *tlp, bool ends_read); // takes the reference
bool gpu_egress_has_room(const gpu_t *gpu, enum pcie_class class); // no TLP of the class waits

// The word that the last short read was for, and the cause of a write to it since then (sim/kernel/cause.h).
struct gpu_watch {
    uint64_t address;
    sim_cause_t written; // 0: nothing
};

struct gpu {
    sim_t *sim;
    pcie_pool_t *pool;
    struct gpu_config config;
    pcie_end_t *end;
    uint64_t bar_base;
    // memory
    uint8_t *memory;
    struct gpu_allocation *allocations;
    struct gpu_waiter *waiters;
    // window
    uint32_t *pages; // of the window: the page of device memory; 0, which is never allocated: not mapped
    struct gpu_pin *pins;
    uint32_t *l2; // sets of numbers of units, the one used last first
    // target
    struct pcie_ring committing, reads_waiting, reads_active;
    uint64_t visible_ps;    // when every write that has arrived is visible
    uint32_t reads_at_work; // active, or with completions that the link has not taken yet
    sim_event_t commit_event, read_event;
    // egress
    struct pcie_egress egress;
    // engines
    struct gpu_unit units[GPU_UNIT_COUNT];
    struct pcie_tags tags;               // owner: struct gpu_unit
    uint64_t tag_targets[PCIE_TAGS_MAX]; // in device memory
    struct gpu_unit *flushes;            // its flush read is outstanding; NULL: none
    gpu_queue_t *queues;
    uint64_t counters[GPU_COUNTERS];
    struct gpu_watch watch;
    char name[GPU_NAME_MAX];
};
