// Copies, atomics and barriers of ACP (morie2016 5).
//
// acp-latency: each operation is complete before the next begins, as in the paper's imitation of IMB; the row's
// latencies are those of rank 0. put, get: between ranks 0 and 1. remote-copy: rank 0 requests a copy from rank 1 to
// rank 2. fetch-add: on a word of rank 1, by all others at once. barrier: of all.
// acp-bandwidth: `depth` operations are in the command queue, but never more than it holds; the time is from the first
// call to the last completion, for fetch-add of all ranks.
#include <errno.h>
#include <string.h>

#include "scenarios/workloads/acp_ranks.h"

enum { QUEUE_COMMANDS = 1024, WORD_BYTES = 8 };

struct copies {
    struct acp_ranks ranks;
    uint32_t point, depth; // 1: latency
    uint64_t begin_ps, end_ps, min_ps, max_ps;
};

static enum workload_operation operation_of(const struct copies *c)
{
    return c->ranks.workload->verbs.operation;
}

static bool acts(const struct copies *c)
{
    uint32_t rank = c->ranks.workload->rank;
    enum workload_operation operation = operation_of(c);
    return rank == 0 || operation == WORKLOAD_BARRIER || (operation == WORKLOAD_FETCH_ADD && rank != 1);
}

static int one_issue(struct copies *c, acp_handle_t *handle_out)
{
    const struct acp_ranks *r = &c->ranks;
    uint32_t rank = r->workload->rank;
    switch (operation_of(c)) {
    case WORKLOAD_GET:
        *handle_out = acp_copy(r->targets[0], r->sources[1], r->bytes, ACP_HANDLE_NULL);
        break;
    case WORKLOAD_REMOTE_COPY:
        *handle_out = acp_copy(r->targets[2], r->sources[1], r->bytes, ACP_HANDLE_NULL);
        break;
    case WORKLOAD_FETCH_ADD:
        *handle_out = acp_add8(r->targets[rank], r->sources[1], 1, ACP_HANDLE_NULL);
        break;
    case WORKLOAD_BARRIER:
        *handle_out = ACP_HANDLE_NULL;
        return acp_sync() == 0 ? 0 : acp_ranks_fail(r, "acp_sync");
    case WORKLOAD_PUT:
    default:
        *handle_out = acp_copy(r->targets[1], r->sources[0], r->bytes, ACP_HANDLE_NULL);
        break;
    }
    return *handle_out != ACP_HANDLE_NULL ? 0 : acp_ranks_fail(r, "the command was refused");
}

static void stamp(struct copies *c, int64_t number, uint64_t *last_ps)
{
    uint64_t now_ps = acp_ranks_now_ps(&c->ranks), took_ps = now_ps - *last_ps;
    if (number == 0) {
        c->begin_ps = now_ps;
    } else if (number > 0) {
        c->min_ps = number == 1 || took_ps < c->min_ps ? took_ps : c->min_ps;
        c->max_ps = number == 1 || took_ps > c->max_ps ? took_ps : c->max_ps;
    }
    c->end_ps = now_ps;
    *last_ps = now_ps;
}

static int one_by_one(struct copies *c)
{
    const struct workload *w = c->ranks.workload;
    uint32_t count = w->warmup + w->iterations;
    uint64_t last_ps = 0;
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        acp_handle_t handle;
        stamp(c, (int64_t)i - w->warmup, &last_ps);
        error = one_issue(c, &handle);
        acp_complete(handle);
    }
    stamp(c, (int64_t)count - w->warmup, &last_ps);
    return error;
}

static int many_at_once(struct copies *c)
{
    const struct workload *w = c->ranks.workload;
    uint32_t count = w->iterations;
    int error = 0;
    acp_handle_t handle = ACP_HANDLE_NULL;
    c->begin_ps = acp_ranks_now_ps(&c->ranks);
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        error = one_issue(c, &handle);
        acp_complete(handle - (acp_handle_t)c->depth + 1 > 0 ? handle - (acp_handle_t)c->depth + 1 : ACP_HANDLE_NULL);
    }
    acp_complete(handle);
    c->end_ps = acp_ranks_now_ps(&c->ranks);
    c->min_ps = c->max_ps = (c->end_ps - c->begin_ps) / count;
    return error;
}

// --- data -----------------------------------------------------------------------------------------------------------

static void data_fill(struct copies *c)
{
    struct acp_ranks *r = &c->ranks;
    region_guard(&r->target);
    if (operation_of(c) == WORKLOAD_FETCH_ADD) {
        memset(region_data(&r->source), 0, WORD_BYTES);
    } else {
        region_fill(&r->source, 0, r->bytes, c->point + 1);
        region_invert(&r->target, 0, r->bytes, c->point + 1);
    }
}

static bool receives(const struct copies *c)
{
    uint32_t rank = c->ranks.workload->rank;
    switch (operation_of(c)) {
    case WORKLOAD_PUT:
        return rank == 1;
    case WORKLOAD_GET:
        return rank == 0;
    case WORKLOAD_REMOTE_COPY:
        return rank == 2;
    default:
        return false;
    }
}

static int data_check(struct copies *c)
{
    struct acp_ranks *r = &c->ranks;
    const struct workload *w = r->workload;
    long bad = 0;
    uint64_t count, expected = (uint64_t)(w->ranks - 1) * (w->iterations + (c->depth == 1 ? w->warmup : 0));
    if (receives(c) && !region_holds(&r->target, 0, r->bytes, c->point + 1, &bad)) {
        return acp_ranks_fail(r, "wrong data have arrived");
    }
    memcpy(&count, region_data(&r->source), sizeof count);
    if (operation_of(c) == WORKLOAD_FETCH_ADD && w->rank == 1 && count != expected) {
        return acp_ranks_fail(r, "the number of additions to the word is wrong");
    }
    return region_is_guarded(&r->target) ? 0 : acp_ranks_fail(r, "bytes beside the target were written");
}

// --- points ---------------------------------------------------------------------------------------------------------

// The time of all active ranks: from the first one's begin to the last one's end.
static void span_gather(struct copies *c)
{
    struct span {
        uint64_t begin_ps, end_ps;
    } mine = {acts(c) ? c->begin_ps : UINT64_MAX, acts(c) ? c->end_ps : 0}, all[WORKLOAD_RANKS_MAX];
    const struct workload *w = c->ranks.workload;
    w->gather(w->ctx, &mine, all, sizeof mine);
    for (uint32_t i = 0; i < w->ranks; i++) {
        c->begin_ps = all[i].begin_ps < c->begin_ps ? all[i].begin_ps : c->begin_ps;
        c->end_ps = all[i].end_ps > c->end_ps ? all[i].end_ps : c->end_ps;
    }
}

static int point_run(struct copies *c)
{
    struct acp_ranks *r = &c->ranks;
    const struct workload *w = r->workload;
    int error = 0;
    uint64_t operations = w->iterations;
    data_fill(c);
    acp_ranks_meet(r);
    if (acts(c)) {
        error = c->depth == 1 ? one_by_one(c) : many_at_once(c);
    }
    if (error != 0) {
        return error;
    }
    if (c->depth != 1) {
        span_gather(c);
        operations *= operation_of(c) == WORKLOAD_FETCH_ADD ? w->ranks - 1 : 1;
    }
    acp_ranks_meet(r);
    error = data_check(c);
    acp_ranks_meet(r); // no rank reports while a check may still fail
    if (error == 0 && w->rank == 0) {
        const struct workload_point point = {.bytes = r->bytes,
                                             .descriptors = 1,
                                             .operations = operations,
                                             .total_ps = c->end_ps - c->begin_ps,
                                             .min_ps = c->min_ps,
                                             .max_ps = c->max_ps};
        w->report(w->ctx, &point);
    }
    return error;
}

static int copies_run(struct workload *workload, const char *program, uint32_t depth)
{
    struct copies c = {.depth = depth};
    size_t capacity = (size_t)region_largest(workload->bytes, workload->bytes_count);
    c.ranks.bytes = capacity;
    int error = acp_ranks_begin(&c.ranks, workload, program, capacity < WORD_BYTES ? WORD_BYTES : capacity);
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        c.ranks.bytes = workload->bytes[i];
        c.point = i;
        error = point_run(&c);
    }
    return error == 0 ? acp_ranks_end(&c.ranks) : error;
}

int workload_acp_latency(struct workload *workload)
{
    return copies_run(workload, "acp-latency", 1);
}

int workload_acp_bandwidth(struct workload *workload)
{
    uint32_t depth = workload->verbs.depth < QUEUE_COMMANDS ? workload->verbs.depth : QUEUE_COMMANDS;
    return copies_run(workload, "acp-bandwidth", depth < 2 ? 2 : depth);
}
