// The memory of a rank that has put data to every other rank (morie2016 5.3, One_put_all): the allocations of the
// library, and the memory that its device driver has pinned for queue pairs and completion queues.
#include <errno.h>

#include "scenarios/workloads/acp_ranks.h"
#include "verbs-shim/acp/acp_memory.h"

#define PAGE_BYTES 4096u

static int puts_run(struct acp_ranks *ranks)
{
    const struct workload *w = ranks->workload;
    for (uint32_t i = 0; w->rank == 0 && i < w->iterations * (w->ranks - 1); i++) {
        uint32_t to = 1 + i % (w->ranks - 1);
        if (acp_copy(ranks->targets[to], ranks->sources[0], ranks->bytes, ACP_HANDLE_NULL) == ACP_HANDLE_NULL) {
            return acp_ranks_fail(ranks, "a put was refused");
        }
    }
    acp_complete(ACP_HANDLE_ALL);
    return 0;
}

static void memory_report(const struct acp_ranks *ranks, uint64_t pinned_bytes)
{
    const struct workload *w = ranks->workload;
    uint64_t bytes = pinned_bytes - acp_memory_pinned();
    for (unsigned kind = 0; kind < ACP_MEMORY_KINDS; kind++) {
        bytes += acp_memory_bytes((enum acp_memory_kind)kind);
    }
    const struct workload_point point = {.bytes = ranks->bytes, .descriptors = 1, .memory_bytes = bytes};
    w->report(w->ctx, &point);
}

// The driver pins whole pages.
static uint64_t region_pinned(const struct region *region)
{
    return (region->buffer.bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

int workload_acp_memory(struct workload *workload)
{
    struct acp_ranks ranks = {.bytes = workload->bytes[0]};
    uint64_t before = workload->pinned_bytes(workload->ctx);
    int error =
        acp_ranks_begin(&ranks, workload, "acp-memory", (size_t)region_largest(workload->bytes, workload->bytes_count));
    uint64_t own = region_pinned(&ranks.source) + region_pinned(&ranks.target); // of the program, not of the library
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        ranks.bytes = workload->bytes[i];
        error = puts_run(&ranks);
        acp_ranks_meet(&ranks);
        if (error == 0 && workload->rank == 0) {
            memory_report(&ranks, workload->pinned_bytes(workload->ctx) - before - own);
        }
    }
    return error == 0 ? acp_ranks_end(&ranks) : error;
}
