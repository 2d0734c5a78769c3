// A node with GPUs for tests that is no simulation: device memory in arrays, queues with a clock, processes that take
// turns. It is as unkind as the border allows: work moves its bytes when it ends and not before, and stores through a
// BAR arrive with the fence.
//
// Rates: 100 ps a byte copied by a GPU or a processor, 1 us for each copy or fill of a GPU, 10 ns for a mark or an
// AFTER. Calls: 100 ns, copies that are waited for 6 us, submissions 2 us, management 10 us.
#pragma once

#include "tests/shim/test.h"
#include "verbs-shim/backend/backend.h"

#define BOX_GPUS        3
#define BOX_GPU_BYTES   (8u << 20)
#define BOX_BAR_PAGES   64u
#define BOX_STAGING     65536u
#define BOX_PROCESSES   2
#define BOX_QUEUES      32
#define BOX_WORKS       512
#define BOX_PINNED_MAX  32
#define BOX_ALLOCATIONS 64
#define BOX_PINS        16
#define BOX_BAR_BASE    0x6000000000ull
#define BOX_PAGE_FREE   UINT64_MAX

struct box_work {
    struct backend_gpu_work work;
    uint64_t ticket, submitted_ps, started_ps, ended_ps;
    bool ended, failed;
};

struct box_queue {
    bool exists;
    unsigned gpu;
    struct box_work works[BOX_WORKS];
    unsigned count, done;
};

struct box_range {
    uint64_t start, bytes; // bytes 0: free
    uint64_t offset;       // of a pin
};

struct box_gpu {
    uint8_t memory[BOX_GPU_BYTES];
    struct box_range allocations[BOX_ALLOCATIONS], pins[BOX_PINS];
    uint64_t pages[BOX_BAR_PAGES]; // device address behind each page of the BAR, BOX_PAGE_FREE: none
};

struct box {
    struct backend_process processes[BOX_PROCESSES];
    struct backend_process *current;
    unsigned gpus;
    uint64_t now_ps;
    struct box_gpu gpu[BOX_GPUS];
    struct box_queue queues[BOX_QUEUES];
    struct backend_buffer pinned[BOX_PINNED_MAX];
    unsigned pinned_live, unsupported; // BAR accesses that nobody answered
    uint64_t copied_bytes;             // by processors
    bool fail_next;                    // the work submitted next ends in failure
    bool no_pinned, no_staging;
    struct { // stores that wait for the fence
        enum backend_bar bar;
        uint64_t offset;
        size_t bytes;
        uint8_t data[4096];
    } stored[64];
    unsigned stored_count;
};

extern const struct backend_gpu_ops box_gpu_ops;

// One box at a time.
struct box *box_open(void);
// Ends the processes; what they left on the devices goes with the box.
void box_close(struct box *box);
// The next calls are those of this process.
void box_process(struct box *box, unsigned number);
// The calls end, as a process that is abandoned.
void box_process_end(struct box *box, unsigned number);

void box_run_until(struct box *box, uint64_t ps);
// Copies of this kind, in the order they were submitted to one queue after the other; NULL: no such one.
const struct box_work *box_work(const struct box *box, enum backend_gpu_work_kind kind, unsigned index);
unsigned box_work_count(const struct box *box, enum backend_gpu_work_kind kind);
uint8_t *box_device(struct box *box, const void *pointer); // the memory behind a device pointer
void box_fill(void *data, size_t bytes, uint32_t seed);
