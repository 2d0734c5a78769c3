// Sets up a node with GPUs without the simulator: device memory in arrays, work queues with a clock, and processes that
// run one at a time. It is as late as the backend interface permits: work moves its bytes when it ends, and stores
// through a BAR arrive at the fence.
//
// Rates: 100 ps a byte copied by a GPU or a processor, 1 us for each copy or fill of a GPU, 10 ns for a MARK or an
// AFTER. Calls: 100 ns, synchronous copies 6 us, submissions 2 us, management 10 us.
#pragma once

#include "tests/shim/test.h"
#include "verbs-shim/backend/backend.h"

#define CUDA_FIXTURE_GPUS        3
#define CUDA_FIXTURE_GPU_BYTES   (8u << 20)
#define CUDA_FIXTURE_BAR_PAGES   64u
#define CUDA_FIXTURE_STAGING     65536u
#define CUDA_FIXTURE_PROCESSES   2
#define CUDA_FIXTURE_QUEUES      32
#define CUDA_FIXTURE_WORKS       512
#define CUDA_FIXTURE_PINNED_MAX  32
#define CUDA_FIXTURE_ALLOCATIONS 64
#define CUDA_FIXTURE_PINS        16
#define CUDA_FIXTURE_BAR_BASE    0x6000000000ull
#define CUDA_FIXTURE_PAGE_FREE   UINT64_MAX

struct cuda_fixture_work {
    struct backend_gpu_work work;
    uint64_t ticket, submitted_ps, started_ps, ended_ps;
    bool ended, failed;
};

struct cuda_fixture_queue {
    bool exists;
    unsigned gpu;
    struct cuda_fixture_work works[CUDA_FIXTURE_WORKS];
    unsigned count, done;
};

struct cuda_fixture_range {
    uint64_t start, bytes; // bytes 0: free
    uint64_t offset;       // of a pin
};

struct cuda_fixture_gpu {
    uint8_t memory[CUDA_FIXTURE_GPU_BYTES];
    struct cuda_fixture_range allocations[CUDA_FIXTURE_ALLOCATIONS], pins[CUDA_FIXTURE_PINS];
    uint64_t pages[CUDA_FIXTURE_BAR_PAGES]; // device address of each page of the BAR; CUDA_FIXTURE_PAGE_FREE: none
};

struct cuda_fixture {
    struct backend_process processes[CUDA_FIXTURE_PROCESSES];
    struct backend_process *current;
    unsigned gpus;
    uint64_t now_ps;
    struct cuda_fixture_gpu gpu[CUDA_FIXTURE_GPUS];
    struct cuda_fixture_queue queues[CUDA_FIXTURE_QUEUES];
    struct backend_buffer pinned[CUDA_FIXTURE_PINNED_MAX];
    unsigned pinned_live, unsupported; // unsupported: BAR accesses without an answer
    uint64_t copied_bytes;             // by the processor
    bool fail_next;                    // the next submitted work fails
    bool no_pinned, no_staging;
    struct { // stores that wait for the fence
        enum backend_bar bar;
        uint64_t offset;
        size_t bytes;
        uint8_t data[4096];
    } stored[64];
    unsigned stored_count;
};

extern const struct backend_gpu_ops cuda_fixture_gpu_ops;

// Only one fixture at a time.
struct cuda_fixture *cuda_fixture_open(void);
// Ends the processes; what they left on the devices is destroyed with the fixture.
void cuda_fixture_close(struct cuda_fixture *fixture);
// The next calls belong to this process.
void cuda_fixture_process(struct cuda_fixture *fixture, unsigned number);
// Ends the process as one that is abandoned.
void cuda_fixture_process_end(struct cuda_fixture *fixture, unsigned number);

void cuda_fixture_run_until(struct cuda_fixture *fixture, uint64_t ps);
// Work of this kind, in the order of submission, one queue after the other; NULL: there is none.
const struct cuda_fixture_work *cuda_fixture_work(const struct cuda_fixture *fixture, enum backend_gpu_work_kind kind,
                                                  unsigned index);
unsigned cuda_fixture_work_count(const struct cuda_fixture *fixture, enum backend_gpu_work_kind kind);
uint8_t *cuda_fixture_device(struct cuda_fixture *fixture, const void *pointer); // the memory of a device pointer
void cuda_fixture_fill(void *data, size_t bytes, uint32_t seed);
