// Bandwidth of one operation on libibverbs, with the loop of perftest (ib_send_bw, ib_write_bw, ib_read_bw,
// ib_atomic_bw): requests are posted while the queue pairs have room, in round-robin order; every cq_mod-th of a queue
// pair asks for a completion, and a poll takes up to 16 of them. The time is from the first post to the last
// completion; each queue pair makes all repetitions. With both directions the end that finishes later counts.
//
// Also the flow that interferes with a measured one (akimoto2012, 5.2: a bandwidth program repeated in processes of its
// own on the same two nodes): the same loop, until the measured flow has ended.
#include "scenarios/workloads/flow.h"

#define WITHOUT_END UINT32_MAX

// Posts the next request of a queue pair that makes `until` requests in all.
static int request_post(struct flow_end *end, uint32_t qp, uint32_t until)
{
    uint32_t number = end->sent[qp] + 1;
    return flow_post(end, qp, number % end->cq_mod == 0 || number == until);
}

// Posts as many as there is room for, in round-robin order over the queue pairs.
static int requests_post(struct flow_end *end, uint32_t until)
{
    int error = 0;
    for (bool posted = true; error == 0 && posted;) {
        posted = false;
        for (uint32_t qp = 0; error == 0 && qp < end->qp_count; qp++) {
            if (end->sent[qp] != until && end->sent[qp] - end->done[qp] < end->depth) {
                error = request_post(end, qp, until);
                posted = true;
            }
        }
    }
    return error;
}

// Messages in both directions: polls both completion queues in turn.
static int both_take(struct flow_end *end)
{
    int error = flow_take_received(end, FLOW_BATCH);
    return error == 0 ? flow_take_sent(end) : error;
}

// Makes `until` requests of each queue pair since the point began, and takes as many messages.
static int flow_run(struct flow_end *end, uint32_t until, bool sends, bool receives)
{
    uint64_t all = (uint64_t)until * end->qp_count;
    uint64_t done = sends ? all : 0, arrived = receives ? all : 0;
    int error = 0;
    while (error == 0 && (end->done_all < done || end->arrived_all < arrived)) {
        if (sends) {
            error = requests_post(end, until);
        }
        if (error == 0 && end->done_all < done && end->arrived_all < arrived) {
            error = both_take(end);
        } else if (error == 0) {
            error = end->done_all < done ? flow_wait_sent(end) : flow_wait_received(end, FLOW_BATCH);
        }
    }
    return error;
}

static void point_report(const struct flow_end *end)
{
    const struct workload *w = end->workload;
    uint64_t operations = (uint64_t)flow_iterations(end) * end->qp_count * (w->verbs.bidirectional ? 2 : 1);
    uint64_t took_ps = end->peer_took_ps > end->took_ps ? end->peer_took_ps : end->took_ps;
    uint64_t mean_ps = took_ps / operations;
    const struct workload_point point = {.bytes = end->bytes,
                                         .descriptors = 1,
                                         .operations = operations,
                                         .total_ps = took_ps,
                                         .min_ps = mean_ps,
                                         .max_ps = mean_ps};
    w->report(w->ctx, &point);
}

static int point_run(struct flow_end *end, uint64_t bytes)
{
    const struct workload *w = end->workload;
    bool sends = w->rank == 0 || w->verbs.bidirectional;
    bool receives = flow_is_received(end) && (w->rank == 1 || w->verbs.bidirectional);
    int error = flow_point_begin(end, bytes);
    if (error == 0) {
        error = flow_beside_wait(end);
    }
    if (error != 0) {
        return error;
    }
    error = flow_run(end, w->warmup, sends, receives);
    uint64_t start_ps = flow_now_ps(end);
    if (error == 0) {
        error = flow_run(end, w->warmup + flow_iterations(end), sends, receives);
    }
    end->took_ps = sends ? flow_now_ps(end) - start_ps : 0;
    if (w->rank == 0) {
        w->shared->over = true;
    }
    if (error == 0) {
        error = flow_point_end(end, 0);
    }
    if (error == 0 && w->rank == 0) {
        point_report(end);
    }
    return error;
}

int workload_verbs_bandwidth(struct workload *workload)
{
    struct flow_end end;
    int error = flow_open(&end, workload, "verbs-bandwidth");
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        error = point_run(&end, workload->bytes[i]);
    }
    if (error == 0) {
        flow_close(&end);
    }
    return error;
}

// --- beside ---------------------------------------------------------------------------------------------------------

// The queue is full all the time, from before the measured flow begins; the completion of a last request, after all
// others, shows that they are complete.
static int beside_send(struct flow_end *end)
{
    int error = requests_post(end, WITHOUT_END);
    while (error == 0 && end->done_all == 0) {
        error = flow_wait_sent(end);
    }
    if (error == 0) {
        error = flow_beside_wait(end);
    }
    while (error == 0 && !end->workload->shared->over) {
        error = requests_post(end, WITHOUT_END);
        if (error == 0) {
            error = flow_wait_sent(end);
        }
    }
    return error == 0 ? flow_post(end, 0, true) : error;
}

static int beside_point(struct flow_end *end)
{
    const struct workload *w = end->workload;
    int error = flow_point_begin(end, w->verbs.beside_bytes);
    if (error != 0) {
        return error;
    }
    error = w->rank == 2 ? beside_send(end) : flow_beside_wait(end);
    if (error == 0) {
        error = flow_point_end(end, 0);
    }
    return error;
}

int workload_verbs_beside(struct workload *workload)
{
    struct flow_end end;
    int error = flow_open(&end, workload, "the flow beside");
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        error = beside_point(&end);
    }
    if (error == 0) {
        flow_close(&end);
    }
    return error;
}
