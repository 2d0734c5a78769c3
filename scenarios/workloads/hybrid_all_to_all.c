// All-to-all: every rank sends a message to every other one, the nearest in rank order first: within the sub-cluster
// over all four channels of the board, to other sub-clusters by InfiniBand.
//
// The row's bytes are those that one rank sends.
#include "scenarios/workloads/hybrid.h"

static const char name[] = "hybrid-all-to-all";

// The link to a rank has its number.
static int links_connect(struct hybrid *hybrid)
{
    struct workload *w = hybrid->workload;
    int error = 0;
    for (uint32_t step = 1; error == 0 && step <= w->ranks / 2; step++) {
        uint32_t to = (w->rank + step) % w->ranks, from = (w->rank + w->ranks - step) % w->ranks;
        error = far_connect(&hybrid->far, w, to, hybrid_is_near(w, to) ? FAR_NONE : to, from,
                            hybrid_is_near(w, from) ? FAR_NONE : from);
    }
    return error;
}

// A message's slot has the number of the other rank: of the receiver at the sender, of the sender at the receiver.
static int prepare(struct hybrid *hybrid)
{
    const struct workload *w = hybrid->workload;
    uint32_t own = hybrid_number(w, w->rank), near = 0;
    int error = 0;
    for (uint32_t step = 1; error == 0 && step < w->ranks; step++) {
        uint32_t to = (w->rank + step) % w->ranks, number = hybrid_number(w, to);
        if (!hybrid_is_near(w, to)) {
            hybrid_far_fill(hybrid, to, to);
            hybrid_far_expect(hybrid, to, to);
            continue;
        }
        group_fill(&hybrid->near, number, number, 0);
        group_expect(&hybrid->near, number, number);
        error = group_send_add(&hybrid->near, near++ % tcaChannels, number, number, own);
    }
    return error == 0 && hybrid_has_near(w) ? group_set(&hybrid->near) : error;
}

static int all_send(struct hybrid *hybrid, uint32_t stamp)
{
    const struct workload *w = hybrid->workload;
    for (uint32_t rank = 0; rank < w->ranks; rank++) {
        if (rank != w->rank && hybrid_is_near(w, rank)) {
            group_stamp(&hybrid->near, hybrid_number(w, rank), hybrid_number(w, rank), stamp);
        }
    }
    int error = hybrid_start(hybrid);
    for (uint32_t step = 1; error == 0 && step < w->ranks; step++) {
        uint32_t to = (w->rank + step) % w->ranks;
        if (!hybrid_is_near(w, to)) {
            error = hybrid_far_send(hybrid, to, to, to, w->rank, stamp);
        }
    }
    return error;
}

static int receive(struct hybrid *hybrid, uint32_t from, uint32_t stamp)
{
    uint32_t number = hybrid_number(hybrid->workload, from);
    if (!hybrid_is_near(hybrid->workload, from)) {
        return hybrid_far_receive(hybrid, from, from, stamp);
    }
    int error = group_wait_received(&hybrid->near, number, number);
    return error == 0 ? group_check_stamp(&hybrid->near, number, number, stamp) : error;
}

static int exchange(struct hybrid *hybrid, uint32_t stamp)
{
    const struct workload *w = hybrid->workload;
    int error = all_send(hybrid, stamp);
    if (error == 0) {
        error = hybrid_wait_sent(hybrid);
    }
    for (uint32_t step = 1; error == 0 && step < w->ranks; step++) {
        error = receive(hybrid, (w->rank + w->ranks - step) % w->ranks, stamp);
    }
    return error;
}

static int check(struct hybrid *hybrid)
{
    const struct workload *w = hybrid->workload;
    int error = hybrid_check_guards(hybrid);
    for (uint32_t from = 0; error == 0 && from < w->ranks; from++) {
        uint32_t number = hybrid_number(w, from);
        if (from != w->rank) {
            error = hybrid_is_near(w, from) ? group_check_all(&hybrid->near, number, number)
                                            : hybrid_far_check_all(hybrid, from, from);
        }
    }
    return error;
}

// Each repetition begins with a barrier without cost.
static int point_run(struct hybrid *hybrid, uint64_t bytes)
{
    const struct workload *w = hybrid->workload;
    uint64_t total_ps = 0;
    int error = hybrid_point_begin(hybrid, bytes);
    if (error == 0) {
        error = prepare(hybrid);
    }
    for (uint32_t i = 0; error == 0 && i < w->warmup + w->iterations; i++) {
        hybrid_barrier(w);
        uint64_t start_ps = hybrid_now_ps(hybrid->backend);
        error = exchange(hybrid, i + 1);
        if (error == 0) {
            uint64_t span_ps = hybrid_span_ps(w, start_ps, hybrid_now_ps(hybrid->backend));
            total_ps += i >= w->warmup ? span_ps : 0;
        }
    }
    if (error == 0) {
        error = check(hybrid);
    }
    hybrid_barrier(w); // no rank reports while a check may still fail
    if (error == 0 && w->rank == 0) {
        hybrid_report(w, (w->ranks - 1) * bytes, total_ps);
    }
    return error;
}

int workload_hybrid_all_to_all(struct workload *workload)
{
    struct hybrid hybrid;
    int error = hybrid_open(&hybrid, workload, name, workload->near_ranks, workload->ranks, workload->ranks);
    if (error == 0 && hybrid_has_far(workload)) {
        error = links_connect(&hybrid);
    }
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        error = point_run(&hybrid, workload->bytes[i]);
        hybrid.point++;
    }
    if (error == 0) {
        hybrid_close(&hybrid);
    }
    return error;
}
