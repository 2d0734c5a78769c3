// Latency of one operation on libibverbs, with the loops of perftest.
//
// send, send-imm, write-imm (ib_send_lat): a ping-pong; each side takes the message from its completion queue and posts
// its own. Every cq_mod-th of these asks for a completion, which is taken before the wait for the next message.
// write (ib_write_lat): the same, but the message is detected by its last byte in memory, and every request's
// completion is taken. For both, an operation is half a round trip.
// read, compare-swap, fetch-add (ib_read_lat, ib_atomic_lat): one outstanding request; an operation is the whole
// request.
#include <errno.h>

#include "scenarios/workloads/flow.h"

struct latency {
    struct flow_end end;
    uint64_t first_ps, last_ps; // of the measured repetitions
    uint64_t min_ps, max_ps;    // of one request, or of one round trip
};

// A repetition begins; number 0 is the first measured one.
static void stamp(struct latency *l, int64_t number)
{
    uint64_t now_ps = flow_now_ps(&l->end);
    if (number == 0) {
        l->first_ps = now_ps;
    } else if (number > 0) {
        uint64_t took_ps = now_ps - l->last_ps;
        l->min_ps = number == 1 || took_ps < l->min_ps ? took_ps : l->min_ps;
        l->max_ps = number == 1 || took_ps > l->max_ps ? took_ps : l->max_ps;
    }
    l->last_ps = now_ps;
}

static int turn_send(struct flow_end *end, uint32_t turn, uint32_t turns)
{
    bool write = end->workload->verbs.operation == WORKLOAD_WRITE;
    bool signaled = write || turn % end->cq_mod == 0 || turn == turns;
    flow_turn_mark(end, turn);
    int error = flow_post(end, 0, signaled);
    return error == 0 && signaled ? flow_wait_done(end) : error;
}

static int turn_receive(struct flow_end *end, uint32_t turn)
{
    int error = 0;
    if (end->workload->verbs.operation == WORKLOAD_WRITE) {
        return flow_turn_wait(end, turn);
    }
    while (error == 0 && end->arrived_all < turn) {
        error = flow_wait_received(end, 1);
    }
    return error == 0 ? flow_turn_check(end, turn) : error;
}

static int pingpong_run(struct latency *l, uint32_t warmup, uint32_t turns)
{
    struct flow_end *end = &l->end;
    bool starts = end->workload->rank == 0;
    int error = 0;
    for (uint32_t turn = 1; error == 0 && turn <= turns; turn++) {
        if (!starts) {
            error = turn_receive(end, turn);
        }
        stamp(l, (int64_t)turn - 1 - warmup);
        if (error == 0) {
            error = turn_send(end, turn, turns);
        }
        if (error == 0 && starts) {
            error = turn_receive(end, turn);
        }
    }
    stamp(l, (int64_t)turns - warmup);
    return error;
}

static int requests_run(struct latency *l, uint32_t warmup, uint32_t count)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        stamp(l, (int64_t)i - warmup);
        error = flow_post(&l->end, 0, true);
        if (error == 0) {
            error = flow_wait_done(&l->end);
        }
    }
    stamp(l, (int64_t)count - warmup);
    return error;
}

static void point_report(const struct latency *l)
{
    const struct workload *w = l->end.workload;
    uint64_t parts = l->end.turns ? 2 : 1; // operations of a repetition
    const struct workload_point point = {.bytes = l->end.bytes,
                                         .descriptors = 1,
                                         .operations = parts * flow_iterations(&l->end),
                                         .total_ps = l->last_ps - l->first_ps,
                                         .min_ps = l->min_ps / parts,
                                         .max_ps = l->max_ps / parts};
    w->report(w->ctx, &point);
}

static int point_run(struct latency *l, uint64_t bytes)
{
    struct flow_end *end = &l->end;
    const struct workload *w = end->workload;
    int error = flow_point_begin(end, bytes);
    uint32_t count = w->warmup + flow_iterations(end);
    if (error == 0) {
        error = flow_beside_wait(end);
    }
    if (error != 0) {
        return error;
    }
    if (end->turns) {
        error = pingpong_run(l, w->warmup, count);
    } else if (w->rank == 0) {
        error = requests_run(l, w->warmup, count);
    }
    if (w->rank == 0) {
        w->shared->over = true;
    }
    if (error == 0) {
        error = flow_point_end(end, flow_is_marked(end) ? count : 0);
    }
    if (error == 0 && w->rank == 0) {
        point_report(l);
    }
    return error;
}

int workload_verbs_latency(struct workload *workload)
{
    struct latency l;
    bool gpu = workload->source_gpu >= 0 || workload->destination_gpu >= 0;
    if (gpu && workload->verbs.operation == WORKLOAD_WRITE) {
        workload->fail(workload->ctx, "verbs-latency of write polls the last byte in host memory");
        return -EINVAL;
    }
    int error = flow_open(&l.end, workload, "verbs-latency");
    l.end.turns = !flow_is_asked(&l.end);
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        error = point_run(&l, workload->bytes[i]);
    }
    if (error == 0) {
        flow_close(&l.end);
    }
    return error;
}
