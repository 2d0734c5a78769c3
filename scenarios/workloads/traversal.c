// The cost of one more chip on the path: rank 0 plays ping-pong by PIO with rank 1, its neighbour on the path to rank
// 2, and then with rank 2. An operation is a chip on the path to rank 2 that is not on the path to rank 1, so a row's
// latency is one traversal, including the cable.
#include "scenarios/workloads/workload.h"

#include <errno.h>

struct traversal {
    struct workload *workload;
    const struct backend *backend;
    struct backend_buffer word;
    uint64_t addresses[WORKLOAD_RANKS_MAX]; // bus addresses of every rank's word
    uint32_t nodes[WORKLOAD_RANKS_MAX];
};

static int word_send(struct traversal *t, uint32_t to, uint64_t value)
{
    uint64_t address = peach2_window_address(t->workload->board, t->nodes[to], t->addresses[to]);
    return peach2_pio_write(t->workload->board, address, &value, sizeof value);
}

static int word_wait(struct traversal *t, uint64_t value)
{
    return t->backend->ops->wait_word(t->backend->ctx, t->word.address, UINT64_MAX, value, 0);
}

// Round trips first + 1 .. first + count of rank 0 with `other`; every number is used once.
static int turns_run(struct traversal *t, uint32_t other, uint64_t first, uint64_t count)
{
    uint32_t rank = t->workload->rank;
    int error = 0;
    for (uint64_t turn = first + 1; error == 0 && turn <= first + count; turn++) {
        if (rank == 0) {
            error = word_send(t, other, turn);
        }
        if (error == 0) {
            error = word_wait(t, turn);
        }
        if (error == 0 && rank == other) {
            error = word_send(t, 0, turn);
        }
    }
    return error;
}

// The time of the measured round trips with `other`, on rank 0.
static int pair_measure(struct traversal *t, uint32_t other, uint64_t *total_ps_out)
{
    const struct workload *w = t->workload;
    uint64_t first = (uint64_t)other << 32;
    uint8_t mine = 0, all[WORKLOAD_RANKS_MAX];
    w->gather(w->ctx, &mine, all, sizeof mine);
    if (w->rank != 0 && w->rank != other) {
        return 0;
    }
    int error = turns_run(t, other, first, w->warmup);
    uint64_t start_ps = t->backend->ops->time_ps(t->backend->ctx);
    if (error == 0) {
        error = turns_run(t, other, first + w->warmup, w->iterations);
    }
    *total_ps_out = t->backend->ops->time_ps(t->backend->ctx) - start_ps;
    return error;
}

int workload_traversal(struct workload *workload)
{
    struct traversal t = {.workload = workload, .backend = peach2_backend(workload->board)};
    struct workload *w = workload;
    if (w->ranks != 3 || w->hops[2] <= w->hops[1]) {
        w->fail(w->ctx, "a traversal needs a far node and one on the way");
        return -EINVAL;
    }
    int error = t.backend->ops->alloc_pinned(t.backend->ctx, sizeof(uint64_t), &t.word);
    if (error != 0) {
        return error;
    }
    w->gather(w->ctx, &t.word.bus_address, t.addresses, sizeof t.word.bus_address);
    w->gather(w->ctx, &w->node, t.nodes, sizeof w->node);
    uint64_t near_ps = 0, far_ps = 0;
    error = pair_measure(&t, 1, &near_ps);
    if (error == 0) {
        error = pair_measure(&t, 2, &far_ps);
    }
    if (error == 0 && w->rank == 0) {
        uint64_t chips = 2 * (uint64_t)w->iterations * (w->hops[2] - w->hops[1]);
        uint64_t one_ps = (far_ps - near_ps) / chips;
        const struct workload_point point = {.bytes = sizeof(uint64_t),
                                             .descriptors = 1,
                                             .operations = chips,
                                             .total_ps = far_ps - near_ps,
                                             .min_ps = one_ps,
                                             .max_ps = one_ps};
        w->report(w->ctx, &point);
    }
    t.backend->ops->free_pinned(t.backend->ctx, &t.word);
    return error;
}
