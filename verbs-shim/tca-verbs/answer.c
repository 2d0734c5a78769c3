// What the remote side returns: acknowledgements, refusals, grants, and the results of reads and atomics.
#include <errno.h>
#include <string.h>

#include "verbs-shim/tca-verbs/internal.h"

// One word, written by the processor: it does not wait for the board's channel and needs no room in a ring.
void tcav_answer_ack(struct tcav_qp *qp)
{
    struct tcav_peer *peer = qp->peer;
    struct tcav_context *context = qp->pd->context;
    unsigned index = qp->remote_number % TCAV_QPS_MAX;
    uint64_t ack = TCAV_ACK(qp->remote_number, qp->expected);
    qp->ack_sent = qp->expected;
    if (peer->node == context->node) {
        peer->area->acks[index] = ack;
        tcav_pay(context, BACKEND_COST_LOAD_STORE, 1);
    } else if (peer->state == TCAV_PEER_CONNECTED) {
        uint64_t offset = offsetof(struct tcav_area, acks) + index * sizeof ack;
        (void)peach2_pio_write(context->board, tcav_peer_area(peer, offset), &ack, sizeof ack);
    }
}

void tcav_answer_nak(struct tcav_qp *qp, uint32_t message, enum tcav_nak nak, enum hca_fault fault)
{
    qp->answer = (struct tcav_header){.qp = qp->remote_number,
                                      .kind = TCAV_NAK,
                                      .message = message,
                                      .immediate = tcav_nak_word(nak, fault),
                                      .source_qp = qp->number};
    qp->answer_due = true;
    tcav_qp_activate(qp);
}

static struct tcav_header header_of(const struct tcav_qp *qp, const struct tcav_job *job, enum tcav_kind kind)
{
    return (struct tcav_header){
        .qp = qp->remote_number,
        .kind = (uint8_t)kind,
        .message = job->message,
        .offset = job->offset,
        .length = job->length,
        .source_qp = qp->number,
    };
}

static void job_end(struct tcav_qp *qp)
{
    qp->job_head = (qp->job_head + 1) % TCAV_READS_MAX;
    qp->job_count--;
}

void tcav_answer_drop(struct tcav_qp *qp)
{
    for (; qp->job_count != 0; job_end(qp)) {
        const struct tcav_job *job = &qp->jobs[qp->job_head];
        if (job->location.block != TCAV_NOWHERE) {
            tcav_grant_release(qp->peer, qp->remote_number, qp->number, job->message, true);
        }
    }
}

// The key may have been invalidated since the read arrived: then this is an access error, even this late.
static void job_refuse(struct tcav_qp *qp)
{
    uint32_t message = qp->jobs[qp->job_head].message;
    job_end(qp); // the refusal ends the job
    tcav_answer_drop(qp);
    tcav_answer_nak(qp, message, TCAV_NAK_ACCESS, HCA_FAULT_KEY);
    tcav_event_async(qp->pd->context, IBV_EVENT_QP_ACCESS_ERR, qp->user);
    tcav_qp_fail(qp);
}

static bool atomic_answer(struct tcav_qp *qp, const struct tcav_job *job)
{
    if (tcav_ring_small_room(qp->peer) == 0) {
        return false;
    }
    struct tcav_header header = header_of(qp, job, TCAV_ATOMIC_DATA);
    header.bytes = sizeof job->value;
    tcav_ring_send_small(qp->peer, header, &job->value);
    job_end(qp);
    return true;
}

static bool packets_answer(struct tcav_qp *qp, struct tcav_job *job)
{
    bool small = job->length <= TCAV_SMALL_PAYLOAD;
    if ((small ? tcav_ring_small_room(qp->peer) : tcav_ring_large_room(qp->peer)) == 0) {
        return false;
    }
    const struct ibv_sge sge = {job->address, job->length, job->key};
    const struct tcav_source source = {qp->pd, &sge, 1, NULL};
    int bytes = tcav_ring_send_data(qp->peer, header_of(qp, job, TCAV_READ_DATA), &source);
    if (bytes < 0) {
        job_refuse(qp);
        return false;
    }
    job->offset += (uint32_t)bytes;
    if (job->offset == job->length) {
        job_end(qp);
    }
    return true;
}

static bool moved_answer(struct tcav_qp *qp, const struct tcav_job *job, struct tcav_location from)
{
    if (qp->job_move.error != 0) {
        job_refuse(qp);
        return false;
    }
    if (tcav_ring_small_room(qp->peer) == 0) {
        return false;
    }
    unsigned char around[6];
    const struct ibv_sge sge = {job->address, job->length, job->key};
    uint32_t before, bytes = tcav_move_split(from.offset, job->length, &before);
    uint32_t after = job->length - before - bytes;
    if (tcav_list_load(qp->pd, &sge, 1, 0, around, before) != 0 ||
        tcav_list_load(qp->pd, &sge, 1, before + bytes, around + before, after) != 0) {
        job_refuse(qp);
        return false;
    }
    struct tcav_header header = header_of(qp, job, TCAV_READ_DONE);
    header.bytes = (uint16_t)(before + after);
    tcav_ring_send_small(qp->peer, header, around);
    job_end(qp);
    return true;
}

static void move_answer(struct tcav_qp *qp, struct tcav_job *job, struct tcav_location from)
{
    struct tcav_context *context = qp->pd->context;
    struct tcav_location to = job->location;
    uint32_t before, bytes = tcav_move_split(from.offset, job->length, &before);
    from.offset += before;
    to.offset += before;
    qp->job_move = (struct tcav_move){
        .peer = qp->peer,
        .source = tcav_location_address(context, context->node, from),
        .destination = tcav_location_address(context, qp->peer->node, to),
        .bytes = bytes,
        .moved = &job->moved,
    };
    job->moving = true;
    tcav_move_queue(context, &qp->job_move);
}

static bool read_answer(struct tcav_qp *qp, struct tcav_job *job)
{
    if (job->moving && !job->moved) {
        return false;
    }
    const struct ibv_sge sge = {job->address, job->length, job->key};
    if (job->length != 0 && tcav_mr_find(qp->pd, job->key, job->address, job->length, IBV_ACCESS_REMOTE_READ) == NULL) {
        job_refuse(qp);
        return false;
    }
    struct tcav_location from = tcav_list_location(qp->pd, &sge, 1, 0, job->length);
    if (job->moved) {
        return moved_answer(qp, job, from);
    }
    if (job->length >= TCAV_READ_DIRECT_BYTES && tcav_locations_match(from, job->location)) {
        move_answer(qp, job, from);
        return false;
    }
    return packets_answer(qp, job);
}

// A grant answers the current message and is sent first; refusals are sent after the answers to earlier requests.
bool tcav_answer_step(struct tcav_qp *qp)
{
    bool grant = qp->answer_due && qp->answer.kind == TCAV_GRANT;
    if (qp->peer == NULL || qp->peer->state != TCAV_PEER_CONNECTED) {
        return false;
    }
    if (qp->job_count != 0 && !grant) {
        struct tcav_job *job = &qp->jobs[qp->job_head];
        return job->kind == TCAV_ATOMIC_DATA ? atomic_answer(qp, job) : read_answer(qp, job);
    }
    if (!qp->answer_due || tcav_ring_small_room(qp->peer) == 0) {
        return false;
    }
    tcav_ring_send_small(qp->peer, qp->answer, &qp->answer_location);
    qp->answer_due = false;
    return true;
}
