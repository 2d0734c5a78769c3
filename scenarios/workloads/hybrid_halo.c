// Halo exchange on a grid of all ranks, closed in both directions, in which each sub-cluster has a block. In each
// iteration every rank sends one message to each of its four neighbours and waits for theirs: within the sub-cluster by
// a channel of the board for each, to other sub-clusters by InfiniBand. Then it takes part in an all-reduce of one
// number.
//
// A direction with two ranks has one neighbour, not two; one with a single rank has none. No rank begins iteration i + 1
// before every rank has left the exchange of iteration i, because of the all-reduce; so buffers are free again.
#include "scenarios/workloads/hybrid.h"
#include "scenarios/workloads/reduction.h"

#include <errno.h>

enum direction { UP, DOWN, LEFT, RIGHT, DIRECTIONS };
static const enum direction opposite[DIRECTIONS] = {DOWN, UP, RIGHT, LEFT};
static const char name[] = "hybrid-halo";

struct halo {
    struct hybrid hybrid;
    struct reduction reduction;
    uint32_t neighbours[DIRECTIONS]; // ranks
    bool exists[DIRECTIONS], near[DIRECTIONS];
};

// --- the grid ------------------------------------------------------------------------------------------------------

struct grid {
    uint32_t rows, columns, block_rows, block_columns;
};

// The rank at a position. Blocks follow each other row by row, and so do the numbers of a sub-cluster in its block.
static uint32_t rank_at(const struct workload *w, const struct grid *grid, uint32_t row, uint32_t column)
{
    uint32_t block = row / grid->block_rows * (grid->columns / grid->block_columns) + column / grid->block_columns;
    uint32_t number = row % grid->block_rows * grid->block_columns + column % grid->block_columns;
    return w->places->rank_at[block * WORKLOAD_NEAR_MAX + number];
}

static int grid_make(struct halo *halo)
{
    struct workload *w = halo->hybrid.workload;
    struct grid grid = {.columns = w->columns, .block_columns = w->block_columns};
    if (w->columns != 0 && w->block_columns != 0) {
        grid.rows = w->ranks / w->columns;
        grid.block_rows = w->near_ranks / w->block_columns;
    }
    if (grid.rows * grid.columns != w->ranks || grid.block_rows * grid.block_columns != w->near_ranks ||
        grid.columns % grid.block_columns != 0 || grid.rows % grid.block_rows != 0) {
        w->fail(w->ctx, "%s: %u nodes in sub-clusters of %u are no grid of %u columns of blocks of %u", name, w->ranks,
                w->near_ranks, w->columns, w->block_columns);
        return -EINVAL;
    }
    uint32_t block = w->places->sub_cluster_of[w->rank], number = w->places->number_of[w->rank];
    uint32_t blocks = grid.columns / grid.block_columns;
    uint32_t row = block / blocks * grid.block_rows + number / grid.block_columns;
    uint32_t column = block % blocks * grid.block_columns + number % grid.block_columns;
    halo->neighbours[UP] = rank_at(w, &grid, (row + grid.rows - 1) % grid.rows, column);
    halo->neighbours[DOWN] = rank_at(w, &grid, (row + 1) % grid.rows, column);
    halo->neighbours[LEFT] = rank_at(w, &grid, row, (column + grid.columns - 1) % grid.columns);
    halo->neighbours[RIGHT] = rank_at(w, &grid, row, (column + 1) % grid.columns);
    // With two ranks the first sends down and the second up, and each receives from there.
    halo->exists[UP] = grid.rows > 2 || (grid.rows == 2 && row == 1);
    halo->exists[DOWN] = grid.rows > 2 || (grid.rows == 2 && row == 0);
    halo->exists[LEFT] = grid.columns > 2 || (grid.columns == 2 && column == 1);
    halo->exists[RIGHT] = grid.columns > 2 || (grid.columns == 2 && column == 0);
    for (unsigned d = 0; d < DIRECTIONS; d++) {
        halo->near[d] = hybrid_is_near(w, halo->neighbours[d]);
    }
    return 0;
}

static uint32_t far_neighbour(const struct halo *halo, enum direction d)
{
    return halo->exists[d] && !halo->near[d] ? halo->neighbours[d] : FAR_NONE;
}

static int links_connect(struct halo *halo)
{
    struct workload *w = halo->hybrid.workload;
    int error = far_connect(&halo->hybrid.far, w, DOWN, far_neighbour(halo, DOWN), UP, far_neighbour(halo, UP));
    return error == 0
               ? far_connect(&halo->hybrid.far, w, RIGHT, far_neighbour(halo, RIGHT), LEFT, far_neighbour(halo, LEFT))
               : error;
}

// --- the exchange --------------------------------------------------------------------------------------------------

// A message's slot has the number of its direction at the sender, and of the opposite one at the receiver.
static int direction_prepare(struct halo *halo, enum direction d)
{
    struct hybrid *hybrid = &halo->hybrid;
    if (!halo->exists[d]) {
        return 0;
    }
    if (!halo->near[d]) {
        hybrid_far_fill(hybrid, d, halo->neighbours[d]);
        hybrid_far_expect(hybrid, d, halo->neighbours[d]);
        return 0;
    }
    uint32_t number = hybrid_number(hybrid->workload, halo->neighbours[d]);
    group_fill(&hybrid->near, d, number, 0);
    group_expect(&hybrid->near, d, number);
    return group_send_add(&hybrid->near, d, d, number, opposite[d]);
}

static int point_prepare(struct halo *halo, uint64_t bytes)
{
    int error = hybrid_point_begin(&halo->hybrid, bytes);
    for (unsigned d = 0; error == 0 && d < DIRECTIONS; d++) {
        error = direction_prepare(halo, (enum direction)d);
    }
    return error == 0 && hybrid_has_near(halo->hybrid.workload) ? group_set(&halo->hybrid.near) : error;
}

static int all_send(struct halo *halo, uint32_t stamp)
{
    struct hybrid *hybrid = &halo->hybrid;
    for (unsigned d = 0; d < DIRECTIONS; d++) {
        if (halo->exists[d] && halo->near[d]) {
            group_stamp(&hybrid->near, d, hybrid_number(hybrid->workload, halo->neighbours[d]), stamp);
        }
    }
    int error = hybrid_start(hybrid);
    for (unsigned d = 0; error == 0 && d < DIRECTIONS; d++) {
        if (halo->exists[d] && !halo->near[d]) {
            error = hybrid_far_send(hybrid, d, d, halo->neighbours[d], opposite[d], stamp);
        }
    }
    return error;
}

static int near_receive(struct halo *halo, enum direction d, uint32_t stamp)
{
    struct group *near = &halo->hybrid.near;
    uint32_t number = hybrid_number(halo->hybrid.workload, halo->neighbours[d]);
    int error = group_wait_received(near, d, number);
    return error == 0 ? group_check_stamp(near, d, number, stamp) : error;
}

static int exchange(struct halo *halo, uint32_t stamp)
{
    int error = all_send(halo, stamp);
    for (unsigned d = 0; error == 0 && d < DIRECTIONS; d++) {
        if (halo->exists[d]) {
            error = halo->near[d] ? near_receive(halo, (enum direction)d, stamp)
                                  : hybrid_far_receive(&halo->hybrid, d, halo->neighbours[d], stamp);
        }
    }
    return error == 0 ? hybrid_wait_sent(&halo->hybrid) : error;
}

static int sum_check(struct halo *halo, uint32_t stamp)
{
    struct workload *w = halo->hybrid.workload;
    uint64_t sum = stamp + (uint64_t)w->rank;
    uint64_t expected = (uint64_t)w->ranks * stamp + (uint64_t)w->ranks * (w->ranks - 1) / 2;
    int error = reduction_run(&halo->reduction, &sum, 1);
    if (error == 0 && sum != expected) {
        w->fail(w->ctx, "%s: the all-reduce of iteration %u gives %llu, not %llu", name, stamp, (unsigned long long)sum,
                (unsigned long long)expected);
        return -EBADMSG;
    }
    return error;
}

// --- points --------------------------------------------------------------------------------------------------------

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
    struct hybrid *hybrid = &halo->hybrid;
    int error = hybrid_check_guards(hybrid);
    for (unsigned d = 0; error == 0 && d < DIRECTIONS; d++) {
        if (halo->exists[d]) {
            error = halo->near[d]
                        ? group_check_all(&hybrid->near, d, hybrid_number(hybrid->workload, halo->neighbours[d]))
                        : hybrid_far_check_all(hybrid, d, halo->neighbours[d]);
        }
    }
    return error;
}

// The row's bytes are those that a rank sends in an iteration.
static int point_run(struct halo *halo, uint64_t bytes)
{
    const struct workload *w = halo->hybrid.workload;
    int error = point_prepare(halo, bytes);
    hybrid_barrier(w);
    if (error == 0) {
        error = iterations_run(halo, 0, w->warmup);
    }
    uint64_t start_ps = hybrid_now_ps(halo->hybrid.backend), sent = 0;
    if (error == 0) {
        error = iterations_run(halo, w->warmup, w->iterations);
    }
    uint64_t span_ps = hybrid_span_ps(w, start_ps, hybrid_now_ps(halo->hybrid.backend));
    if (error == 0) {
        error = point_check(halo);
    }
    hybrid_barrier(w);
    for (unsigned d = 0; d < DIRECTIONS; d++) {
        sent += halo->exists[d] ? bytes : 0;
    }
    if (error == 0 && w->rank == 0) {
        hybrid_report(w, sent, span_ps);
    }
    return error;
}

int workload_hybrid_halo(struct workload *workload)
{
    struct halo halo = {0};
    int error = hybrid_open(&halo.hybrid, workload, name, DIRECTIONS, DIRECTIONS, DIRECTIONS);
    if (error == 0) {
        error = grid_make(&halo);
    }
    if (error == 0 && hybrid_has_far(workload)) {
        error = links_connect(&halo);
    }
    if (error == 0) {
        error = reduction_open(&halo.reduction, workload, name, 1);
    }
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        error = point_run(&halo, workload->bytes[i]);
        halo.hybrid.point++;
    }
    if (error == 0) {
        hybrid_close(&halo.hybrid);
        reduction_close(&halo.reduction);
    }
    return error;
}
