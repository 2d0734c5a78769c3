// What arrives of messages on libibverbs, whatever happens to devices and cables meanwhile: the node makes its requests,
// at most `depth` at a time, until all have completed or the first one has failed. Each message has its own place. At
// the end every byte of both memories is examined, and the program counts what it was told and what it finds
// (counts.def). A completion in error is a result and no mistake of the program.
//
// The time is from the first post to the last completion; the operations are the requests that ended well.
#include <errno.h>
#include <string.h>

#include "scenarios/workloads/flow.h"
#include "verbs-shim/ibverbs/device.h"

#define LOOK_NS   20000ull  // the peer's waits, between which it sees whether the node has ended
#define SETTLE_NS 300000ull // without a message: nothing is under way any more

struct delivery {
    struct flow_end end;
    uint32_t begun, ended, completed; // requests
    bool broken;                      // one failed
    uint32_t received;
    uint64_t took_ps;
};

struct letter {
    uint32_t begun, completed;
};

static void count(const struct delivery *d, enum workload_count which, uint64_t more)
{
    d->end.workload->counts[which] += more;
}

static uint32_t messages(const struct delivery *d)
{
    return d->end.workload->iterations;
}

// --- the node --------------------------------------------------------------------------------------------------------

static int request_make(struct delivery *d)
{
    int error = flow_post_slot(&d->end, d->begun);
    d->begun++;
    count(d, WORKLOAD_COUNT_REQUESTS, 1);
    return error;
}

static void completion_take(struct delivery *d, const struct ibv_wc *wc)
{
    bool flushed = wc->status == IBV_WC_WR_FLUSH_ERR;
    d->ended++;
    if (wc->status == IBV_WC_SUCCESS) {
        d->completed++;
        count(d, WORKLOAD_COUNT_COMPLETED, 1);
        return;
    }
    d->broken = true;
    count(d, flushed ? WORKLOAD_COUNT_FLUSHED : WORKLOAD_COUNT_FAILED, 1);
}

static int completions_take(struct delivery *d)
{
    struct ibv_wc wcs[FLOW_BATCH];
    int error = ibverbs_cq_wait(d->end.send_cq, 0);
    int found = error == 0 ? ibv_poll_cq(d->end.send_cq, FLOW_BATCH, wcs) : 0;
    for (int i = 0; i < found; i++) {
        completion_take(d, &wcs[i]);
    }
    return error == 0 ? 0 : flow_give_up(&d->end, error, "waiting for a request");
}

static int node_run(struct delivery *d)
{
    uint64_t start_ps = flow_now_ps(&d->end);
    int error = 0;
    while (error == 0 && (d->ended < d->begun || (!d->broken && d->begun < messages(d)))) {
        while (error == 0 && !d->broken && d->begun < messages(d) && d->begun - d->ended < d->end.depth) {
            error = request_make(d);
        }
        if (error == 0) {
            error = completions_take(d);
        }
    }
    d->took_ps = flow_now_ps(&d->end) - start_ps;
    d->end.workload->shared->over = true;
    return error;
}

// --- the peer --------------------------------------------------------------------------------------------------------

// 0: something was there; ETIMEDOUT.
static int messages_take(struct delivery *d, uint64_t timeout_ns)
{
    struct ibv_wc wcs[FLOW_BATCH];
    int error = ibverbs_cq_wait(d->end.receive_cq, timeout_ns);
    int found = error == 0 ? ibv_poll_cq(d->end.receive_cq, FLOW_BATCH, wcs) : 0;
    for (int i = 0; i < found; i++) {
        if (wcs[i].status == IBV_WC_SUCCESS && wcs[i].wr_id != d->received) {
            d->end.workload->fail(d->end.workload->ctx, "message %u was received as number %u", (unsigned)wcs[i].wr_id,
                                  d->received);
            return EBADMSG;
        }
        d->received += wcs[i].status == IBV_WC_SUCCESS;
    }
    return error;
}

// Serves the node, and takes its messages, until nothing can be under way any more.
static int peer_run(struct delivery *d)
{
    int error = 0;
    while (!d->end.workload->shared->over && (error == 0 || error == ETIMEDOUT)) {
        error = messages_take(d, LOOK_NS);
    }
    do {
        error = messages_take(d, SETTLE_NS);
    } while (error == 0);
    count(d, WORKLOAD_COUNT_RECEIVED, d->received);
    return error == ETIMEDOUT ? 0 : -error;
}

// --- memory ----------------------------------------------------------------------------------------------------------

// The memory that requests write: that of the peer, or the node's own.
static bool holds_target(const struct delivery *d)
{
    bool reads = d->end.workload->verbs.operation == WORKLOAD_READ;
    return (d->end.workload->rank == 0) == reads;
}

static void memory_fill(struct delivery *d, uint64_t bytes)
{
    struct flow_end *end = &d->end;
    end->bytes = bytes;
    region_guard(&end->target.region);
    for (uint32_t i = 0; i < messages(d); i++) {
        region_fill(&end->source.region, flow_memory_offset(&end->source, i), bytes, i);
        region_invert(&end->target.region, flow_memory_offset(&end->target, i), bytes, i);
    }
    if (flow_is_atomic(end)) {
        memset(flow_memory_data(&end->target, 0), 0, FLOW_ATOMIC_BYTES);
    }
}

// Whether all bytes are as before the first request. The source is no longer needed.
static bool is_untouched(struct delivery *d, uint32_t i)
{
    struct flow_end *end = &d->end;
    region_invert(&end->source.region, 0, (size_t)end->bytes, i);
    return memcmp(flow_memory_data(&end->target, i), region_data(&end->source.region), (size_t)end->bytes) == 0;
}

// Atomics add one each: the word says how many there were.
static uint32_t atomics_arrived(const struct delivery *d)
{
    uint64_t word;
    memcpy(&word, flow_memory_data(&d->end.target, 0), sizeof word);
    return (uint32_t)word;
}

static int message_examine(struct delivery *d, uint32_t i, const struct letter *node)
{
    struct flow_end *end = &d->end;
    long bad;
    if (region_holds(&end->target.region, flow_memory_offset(&end->target, i), (size_t)end->bytes, i, &bad)) {
        count(d, WORKLOAD_COUNT_ARRIVED, 1);
        return 0;
    }
    bool untouched = is_untouched(d, i);
    if (!untouched && i >= node->begun) {
        end->workload->fail(end->workload->ctx, "memory for message %u changed, and nobody asked for it", i);
        return -EBADMSG;
    }
    count(d, WORKLOAD_COUNT_TORN, !untouched);
    count(d, WORKLOAD_COUNT_MISSING, i < node->completed);
    return 0;
}

static int target_examine(struct delivery *d, const struct letter *node)
{
    struct flow_end *end = &d->end;
    int error = flow_memory_pull(end, &end->target);
    if (error == 0 && flow_is_atomic(end)) {
        uint32_t arrived = atomics_arrived(d);
        count(d, WORKLOAD_COUNT_ARRIVED, arrived);
        count(d, WORKLOAD_COUNT_MISSING, arrived < node->completed ? node->completed - arrived : 0);
        return 0;
    }
    for (uint32_t i = 0; error == 0 && i < messages(d); i++) {
        error = message_examine(d, i, node);
    }
    if (error == 0 && !region_is_guarded(&end->target.region)) {
        end->workload->fail(end->workload->ctx, "bytes beside the messages changed");
        error = -EBADMSG;
    }
    return error;
}

// --- points ----------------------------------------------------------------------------------------------------------

static void point_report(const struct delivery *d)
{
    const struct workload *w = d->end.workload;
    uint64_t mean_ps = d->completed > 0 ? d->took_ps / d->completed : 0;
    const struct workload_point point = {.bytes = d->end.bytes,
                                         .descriptors = 1,
                                         .operations = d->completed,
                                         .total_ps = d->took_ps,
                                         .min_ps = mean_ps,
                                         .max_ps = mean_ps};
    w->report(w->ctx, &point);
}

static int receives_post(struct delivery *d)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < messages(d); i++) {
        error = flow_receive_slot(&d->end, i);
    }
    return error;
}

static int point_run(struct delivery *d, uint64_t bytes)
{
    struct workload *w = d->end.workload;
    struct letter mine = {0}, all[WORKLOAD_RANKS_MAX];
    memory_fill(d, bytes);
    int error = flow_memory_push(&d->end, &d->end.source);
    if (error == 0) {
        error = flow_memory_push(&d->end, &d->end.target);
    }
    if (error == 0 && w->rank == 1 && flow_is_received(&d->end)) {
        error = receives_post(d);
    }
    if (error == 0) {
        error = flow_barrier(&d->end);
    }
    if (error == 0) {
        error = w->rank == 0 ? node_run(d) : peer_run(d);
    }
    if (error != 0) {
        return error;
    }
    mine = (struct letter){d->begun, d->completed};
    w->gather(w->ctx, &mine, all, sizeof mine);
    error = holds_target(d) ? target_examine(d, &all[0]) : 0;
    if (error == 0 && w->rank == 0) {
        point_report(d);
    }
    return error;
}

// Objects that failed are left to the end of the process: a region that a broken cable has cut off cannot be freed
// earlier (verbs-shim/tca-verbs/README.md).
int workload_verbs_delivery(struct workload *workload)
{
    struct delivery d = {0};
    int error = flow_open_slots(&d.end, workload, "verbs-delivery", workload->iterations);
    if (error == 0) {
        error = point_run(&d, workload->bytes[0]);
    }
    return error;
}
