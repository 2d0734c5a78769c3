// Ping-pong between two nodes on libtca, as sato2015 2.6 measures it: the descriptor is set once; a turn is one start
// and one wait for the notification. A block of round trips is timed as a whole; an operation is half a round trip.
//
// Messages in host memory are stamped and checked in every turn. Those in a GPU's memory are checked only after the
// last turn, because the processor must not access them while the clock runs.
//
// Staged (hanawa2013 4.3): the DMA does not read the GPU's memory. Each turn first copies the message from there into
// pinned host memory with cudaMemcpy, and the DMA sends it from there.
#include <cuda_runtime.h>
#include <errno.h>
#include <string.h>

#include "scenarios/workloads/group.h"

struct pingpong {
    struct group group;
    void *staging; // in host memory; NULL: not staged
};

// The previous own message has been read by then, because its answer has arrived.
static int turn_send(struct pingpong *p, uint32_t turn)
{
    struct group *group = &p->group;
    if (p->staging != NULL) {
        const void *message =
            (uint8_t *)group->send_device + (region_data(&group->send) - (uint8_t *)group->send.buffer.address);
        int error = group_cuda(
            group, (int)cudaMemcpy(p->staging, message, (size_t)group->bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
        if (error != 0) {
            return error;
        }
    } else if (group_is_stamped(group)) {
        group_stamp(group, 0, 1 - group->workload->rank, turn);
    }
    return group_start(group);
}

static int turn_receive(struct pingpong *p, uint32_t turn)
{
    struct group *group = &p->group;
    int error = group_wait_received(group, 0, 1 - group->workload->rank);
    bool stamped = group_is_stamped(group);
    return error == 0 && stamped ? group_check_stamp(group, 0, 1 - group->workload->rank, turn) : error;
}

static int turns_run(struct pingpong *p, uint32_t first, uint32_t count)
{
    bool starts = p->group.workload->rank == 0;
    int error = 0;
    for (uint32_t turn = first; error == 0 && turn < first + count; turn++) {
        error = starts ? turn_send(p, turn) : turn_receive(p, turn);
        if (error == 0) {
            error = starts ? turn_receive(p, turn) : turn_send(p, turn);
        }
    }
    return error;
}

static int point_measure(struct pingpong *p)
{
    struct group *group = &p->group;
    const struct workload *w = group->workload;
    group_barrier(group);
    int error = turns_run(p, 0, w->warmup);
    uint64_t start_ps = group_now_ps(group);
    if (error == 0) {
        error = turns_run(p, w->warmup, w->iterations);
    }
    uint64_t end_ps = group_now_ps(group);
    if (error == 0) {
        error = group_wait_sent(group);
    }
    if (error != 0) {
        return error;
    }
    group_barrier(group);
    error = group_pull(group);
    if (error != 0) {
        return error;
    }
    error = group_check_all(group, 0, 1 - w->rank);
    if (error == 0) {
        error = group_check_guards(group);
    }
    if (error == 0 && w->rank == 0) {
        uint64_t operations = 2 * (uint64_t)w->iterations, mean_ps = (end_ps - start_ps) / operations;
        const struct workload_point point = {.bytes = group->bytes,
                                             .descriptors = 1,
                                             .operations = operations,
                                             .total_ps = end_ps - start_ps,
                                             .min_ps = mean_ps,
                                             .max_ps = mean_ps};
        w->report(w->ctx, &point);
    }
    return error;
}

static int point_run(struct pingpong *p)
{
    struct group *group = &p->group;
    uint32_t other = 1 - group->workload->rank;
    int error = group_reset(group);
    group_fill(group, 0, other, 0);
    group_expect(group, 0, other);
    if (p->staging != NULL) {
        memset(p->staging, 0, (size_t)group->bytes); // clears data of the previous point
    }
    if (error == 0) {
        error = group_push(group);
    }
    if (error == 0) {
        error = group_send_add(group, 0, 0, other, 0);
    }
    if (error == 0) {
        error = group_set(group);
    }
    return error == 0 ? point_measure(p) : error;
}

// The staged message is in pinned host memory, not in the GPU's.
static int staging_alloc(struct pingpong *p)
{
    struct group *group = &p->group;
    size_t bytes = group->send.capacity;
    if (group->send_device == NULL) {
        group->workload->fail(group->workload->ctx, "%s sends from a GPU's memory", group->program);
        return -EINVAL;
    }
    int error = group_cuda(group, (int)cudaMallocHost(&p->staging, bytes), "cudaMallocHost");
    return error == 0 ? group_tca(group, tcaCreateHandle(&group->send_handle, p->staging, bytes, tcaMemoryCPU),
                                  "tcaCreateHandle")
                      : error;
}

static int pingpong_run(struct workload *workload, const char *program, bool staged)
{
    struct pingpong p = {.staging = NULL};
    struct group *group = &p.group;
    int error = group_init(group, workload, program, 1);
    if (error == 0 && staged) {
        error = staging_alloc(&p);
    }
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        group->bytes = workload->bytes[i];
        error = point_run(&p);
        group->point++;
    }
    if (error == 0) {
        group_fini(group);
        if (staged) {
            (void)cudaFreeHost(p.staging);
        }
    }
    return error;
}

int workload_tca_pingpong(struct workload *workload)
{
    return pingpong_run(workload, "tca-pingpong", false);
}

int workload_staged_pingpong(struct workload *workload)
{
    return pingpong_run(workload, "staged-pingpong", true);
}
