// Halo exchange on a grid of ranks, row by row in rank order and closed in both directions. In each iteration every
// rank sends one message to each of its four neighbours, on a channel each, waits for theirs, and takes part in an
// all-reduce of one 4-byte number, as a solver does for its residual.
//
// A direction with two ranks has one neighbour, not two; one with a single rank has none. The all-reduce is recursive
// doubling by PIO: in round k a rank writes its sum into the memory of the rank that differs in bit k. No rank begins
// iteration i + 1 before every rank has left the exchange of iteration i, so buffers and slots are free again.
#include "scenarios/workloads/group.h"

#include <errno.h>

enum direction { UP, DOWN, LEFT, RIGHT, DIRECTIONS };
static const enum direction opposite[DIRECTIONS] = {DOWN, UP, RIGHT, LEFT};

#define ROUNDS_MAX 4u

struct reduction {
    struct backend_buffer words; // one for each round, for even and odd iterations
    uint64_t addresses[WORKLOAD_RANKS_MAX];
    uint32_t nodes[WORKLOAD_RANKS_MAX];
    uint32_t sequence;
};

struct halo {
    struct group group;
    struct reduction reduction;
    uint32_t neighbours[DIRECTIONS];
    bool exists[DIRECTIONS];
};

// --- all-reduce ----------------------------------------------------------------------------------------------------

static int reduction_init(struct group *group, struct reduction *reduction)
{
    const struct workload *w = group->workload;
    int error =
        group->backend->ops->alloc_pinned(group->backend->ctx, 2 * ROUNDS_MAX * sizeof(uint64_t), &reduction->words);
    w->gather(w->ctx, &reduction->words.bus_address, reduction->addresses, sizeof reduction->words.bus_address);
    w->gather(w->ctx, &w->node, reduction->nodes, sizeof w->node);
    return error;
}

// A word contains the number of the reduction above the sum, so that no reset is necessary.
static int reduce(struct group *group, struct reduction *reduction, uint32_t value, uint32_t *sum_out)
{
    const struct workload *w = group->workload;
    const struct backend *backend = group->backend;
    uint64_t sequence = ++reduction->sequence;
    *sum_out = value;
    for (uint32_t round = 0; 1u << round < w->ranks; round++) {
        uint32_t other = w->rank ^ 1u << round;
        uint64_t offset = (sequence % 2 * ROUNDS_MAX + round) * sizeof(uint64_t);
        uint64_t address =
            peach2_window_address(w->board, reduction->nodes[other], reduction->addresses[other] + offset);
        uint64_t mine = sequence << 32 | *sum_out;
        const uint64_t *theirs = (const uint64_t *)(void *)((char *)reduction->words.address + offset);
        int error = peach2_pio_write(w->board, address, &mine, sizeof mine);
        if (error == 0) {
            error = backend->ops->wait_word(backend->ctx, theirs, UINT64_C(0xffffffff) << 32, sequence << 32, 0);
        }
        if (error != 0) {
            return error;
        }
        *sum_out += (uint32_t)*theirs;
    }
    return 0;
}

// --- the grid ------------------------------------------------------------------------------------------------------

static int grid_make(struct halo *halo)
{
    struct workload *w = halo->group.workload;
    uint32_t columns = w->columns, rows = columns != 0 ? w->ranks / columns : 0;
    if (columns == 0 || rows * columns != w->ranks || (w->ranks & (w->ranks - 1)) != 0) {
        w->fail(w->ctx, "halo: %u nodes are no grid of %u columns, or no power of two", w->ranks, columns);
        return -EINVAL;
    }
    uint32_t row = w->rank / columns, column = w->rank % columns;
    halo->neighbours[UP] = (row + rows - 1) % rows * columns + column;
    halo->neighbours[DOWN] = (row + 1) % rows * columns + column;
    halo->neighbours[LEFT] = row * columns + (column + columns - 1) % columns;
    halo->neighbours[RIGHT] = row * columns + (column + 1) % columns;
    // With two ranks the first sends down and the second up, and each receives from there.
    halo->exists[UP] = rows > 2 || (rows == 2 && row == 1);
    halo->exists[DOWN] = rows > 2 || (rows == 2 && row == 0);
    halo->exists[LEFT] = columns > 2 || (columns == 2 && column == 1);
    halo->exists[RIGHT] = columns > 2 || (columns == 2 && column == 0);
    return 0;
}

// A message's slot has the number of its direction at the sender, and of the opposite one at the receiver.
static int point_prepare(struct halo *halo)
{
    struct group *group = &halo->group;
    int error = group_reset(group);
    for (unsigned d = 0; error == 0 && d < DIRECTIONS; d++) {
        if (halo->exists[d]) {
            group_fill(group, d, halo->neighbours[d], 0);
            group_expect(group, d, halo->neighbours[d]);
            error = group_send_add(group, d, d, halo->neighbours[d], opposite[d]);
        }
    }
    return error == 0 ? group_set(group) : error;
}

static int exchange(struct halo *halo, uint32_t stamp)
{
    struct group *group = &halo->group;
    for (unsigned d = 0; d < DIRECTIONS; d++) {
        if (halo->exists[d]) {
            group_stamp(group, d, halo->neighbours[d], stamp);
        }
    }
    int error = group_start(group);
    for (unsigned d = 0; error == 0 && d < DIRECTIONS; d++) {
        if (halo->exists[d]) {
            error = group_wait_received(group, d, halo->neighbours[d]);
            if (error == 0) {
                error = group_check_stamp(group, d, halo->neighbours[d], stamp);
            }
        }
    }
    return error == 0 ? group_wait_sent(group) : error;
}

static int sum_check(struct halo *halo, uint32_t stamp)
{
    struct workload *w = halo->group.workload;
    uint32_t sum, expected = w->ranks * stamp + w->ranks * (w->ranks - 1) / 2;
    int error = reduce(&halo->group, &halo->reduction, stamp + w->rank, &sum);
    if (error == 0 && sum != expected) {
        w->fail(w->ctx, "halo: the all-reduce of iteration %u gives %u, not %u", stamp, sum, expected);
        return -EBADMSG;
    }
    return error;
}

static int iterations_run(struct halo *halo, uint32_t first, uint32_t count)
{
    int error = 0;
    for (uint32_t i = first; error == 0 && i < first + count; i++) {
        error = exchange(halo, i + 1);
        if (error == 0) {
            error = sum_check(halo, i + 1);
        }
    }
    return error;
}

static int point_check(struct halo *halo)
{
    struct group *group = &halo->group;
    int error = group_check_guards(group);
    for (unsigned d = 0; error == 0 && d < DIRECTIONS; d++) {
        if (halo->exists[d]) {
            error = group_check_all(group, d, halo->neighbours[d]);
        }
    }
    return error;
}

// The row's bytes are those that a rank sends in an iteration.
static int point_run(struct halo *halo)
{
    struct group *group = &halo->group;
    const struct workload *w = group->workload;
    int error = point_prepare(halo);
    group_barrier(group);
    if (error == 0) {
        error = iterations_run(halo, 0, w->warmup);
    }
    uint64_t start_ps = group_now_ps(group);
    if (error == 0) {
        error = iterations_run(halo, w->warmup, w->iterations);
    }
    uint64_t span_ps = group_span_ps(group, start_ps, group_now_ps(group));
    if (error == 0) {
        error = point_check(halo);
    }
    group_barrier(group);
    if (error == 0 && w->rank == 0) {
        uint64_t sent = 0;
        for (unsigned d = 0; d < DIRECTIONS; d++) {
            sent += halo->exists[d] ? group->bytes : 0;
        }
        uint64_t mean_ps = span_ps / w->iterations;
        const struct workload_point point = {.bytes = sent,
                                             .descriptors = 1,
                                             .operations = w->iterations,
                                             .total_ps = span_ps,
                                             .min_ps = mean_ps,
                                             .max_ps = mean_ps};
        w->report(w->ctx, &point);
    }
    return error;
}

int workload_halo(struct workload *workload)
{
    struct halo halo = {0};
    int error = group_init(&halo.group, workload, "halo", DIRECTIONS);
    if (error == 0) {
        error = grid_make(&halo);
    }
    if (error == 0) {
        error = reduction_init(&halo.group, &halo.reduction);
    }
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        halo.group.bytes = workload->bytes[i];
        error = point_run(&halo);
        halo.group.point++;
    }
    if (error == 0) {
        group_fini(&halo.group);
        halo.group.backend->ops->free_pinned(halo.group.backend->ctx, &halo.reduction.words);
    }
    return error;
}
