// The remote side of requests: packets of a queue pair in the order of its messages. Packets out of order are dropped:
// they follow a message that was refused and will be retransmitted.
#include <errno.h>
#include <string.h>

#include "verbs-shim/tca-verbs/internal.h"

// --- errors ---------------------------------------------------------------------------------------------------------

// IBA 9.7.4.1, 11.6.3.3: the requester is notified, and the own queue pair goes to error.
static void fail(struct tcav_qp *qp, uint32_t message, enum tcav_nak nak, enum hca_fault fault)
{
    static const enum ibv_event_type events[] = {
        [TCAV_NAK_ACCESS] = IBV_EVENT_QP_ACCESS_ERR,
        [TCAV_NAK_INVALID] = IBV_EVENT_QP_REQ_ERR,
        [TCAV_NAK_OPERATION] = IBV_EVENT_QP_FATAL,
    };
    tcav_answer_nak(qp, message, nak, fault);
    tcav_event_async(qp->pd->context, events[nak], qp->user);
    tcav_qp_fail(qp);
}

// The receive request itself is wrong; its completion reports this, and there is no event.
static void fail_receive(struct tcav_qp *qp, uint32_t message, enum ibv_wc_status status)
{
    const struct tcav_receive *receive = &qp->inbound.receive;
    bool length = status == IBV_WC_LOC_LEN_ERR;
    enum hca_fault fault = length ? HCA_FAULT_RECEIVE_LENGTH
                                  : tcav_list_fault(qp->pd, receive->sge, receive->sges, IBV_ACCESS_LOCAL_WRITE);
    const struct ibv_wc wc = {
        .wr_id = receive->id, .status = status, .opcode = IBV_WC_RECV, .qp_num = qp->number, .vendor_err = fault};
    qp->has_failure = true;
    qp->failure = (struct ibverbs_failure){.is_receive = true,
                                           .opcode = IBV_WC_RECV,
                                           .bytes = tcav_list_bytes(receive->sge, receive->sges),
                                           .address = receive->sges > 0 ? receive->sge[0].addr : 0,
                                           .lkey = receive->sges > 0 ? receive->sge[0].lkey : 0,
                                           .first_bytes = receive->sges > 0 ? receive->sge[0].length : 0,
                                           .segments = receive->sges};
    qp->inbound.has_receive = false;
    tcav_cq_push(qp->recv_cq, &wc, true);
    tcav_answer_nak(qp, message, length ? TCAV_NAK_INVALID : TCAV_NAK_OPERATION, fault);
    tcav_qp_fail(qp);
}

// --- the beginning of a message -------------------------------------------------------------------------------------

static bool receive_take(struct tcav_qp *qp, const struct tcav_header *header)
{
    if (tcav_rq_take(qp, &qp->inbound.receive)) {
        qp->inbound.has_receive = true;
        return true;
    }
    qp->answer = (struct tcav_header){.qp = qp->remote_number,
                                      .kind = TCAV_RNR,
                                      .message = header->message,
                                      .immediate = qp->rnr_timer,
                                      .source_qp = qp->number};
    qp->answer_due = true;
    qp->pd->context->repeats = true;
    qp->inbound.active = false;
    return false;
}

static bool send_begin(struct tcav_qp *qp, const struct tcav_header *header)
{
    if (!receive_take(qp, header)) {
        return false;
    }
    const struct tcav_receive *receive = &qp->inbound.receive;
    if (header->length > tcav_list_bytes(receive->sge, receive->sges)) {
        fail_receive(qp, header->message, IBV_WC_LOC_LEN_ERR);
        return false;
    }
    if (tcav_list_check(qp->pd, receive->sge, receive->sges, IBV_ACCESS_LOCAL_WRITE) != 0) {
        fail_receive(qp, header->message, IBV_WC_LOC_PROT_ERR);
        return false;
    }
    return true;
}

// IBA 9.7.4.1.5: an operation that the queue pair does not allow is invalid; a wrong key or range is an access error;
// no key is needed for no bytes.
static bool range_check(struct tcav_qp *qp, const struct tcav_header *header, uint32_t bytes, unsigned access)
{
    if ((qp->access & access) == 0) {
        fail(qp, header->message, TCAV_NAK_INVALID, HCA_FAULT_QP_RIGHTS);
        return false;
    }
    if (bytes != 0 && tcav_mr_find(qp->pd, header->key, header->address, bytes, access) == NULL) {
        fail(qp, header->message, TCAV_NAK_ACCESS, tcav_mr_fault(qp->pd, header->key, header->address, bytes, access));
        return false;
    }
    return true;
}

static bool begin(struct tcav_qp *qp, const struct tcav_header *header, enum tcav_kind kind)
{
    if (header->offset != 0) {
        return false; // a further packet of a refused message
    }
    qp->inbound = (struct tcav_inbound){
        .active = true, .kind = kind, .length = header->length, .key = header->key, .address = header->address};
    bool begun = kind == TCAV_SEND ? send_begin(qp, header)
                                   : range_check(qp, header, header->length, IBV_ACCESS_REMOTE_WRITE) &&
                                         ((header->flags & TCAV_IMMEDIATE) == 0 || receive_take(qp, header));
    qp->inbound.active = begun;
    return begun;
}

// --- data -----------------------------------------------------------------------------------------------------------

static int bytes_store(struct tcav_qp *qp, uint64_t offset, const void *data, size_t bytes)
{
    const struct tcav_inbound *in = &qp->inbound;
    if (bytes == 0) {
        return 0;
    }
    if (in->kind == TCAV_SEND) {
        return tcav_list_store(qp->pd, in->receive.sge, in->receive.sges, offset, data, bytes);
    }
    const struct tcav_mr *mr = tcav_mr_find(qp->pd, in->key, in->address + offset, bytes, IBV_ACCESS_REMOTE_WRITE);
    return mr != NULL ? tcav_mr_store(qp->pd->context, mr, in->address + offset, data, bytes) : -EFAULT;
}

static bool data_store(struct tcav_qp *qp, const struct tcav_header *header, uint64_t offset, const void *data,
                       size_t bytes)
{
    if (bytes_store(qp, offset, data, bytes) == 0) {
        return true;
    }
    if (qp->inbound.kind == TCAV_SEND) {
        fail_receive(qp, header->message, IBV_WC_LOC_PROT_ERR);
    } else {
        fail(qp, header->message, TCAV_NAK_ACCESS, HCA_FAULT_KEY);
    }
    return false;
}

static void message_end(struct tcav_qp *qp, const struct tcav_header *header)
{
    struct tcav_inbound *in = &qp->inbound;
    bool immediate = (header->flags & TCAV_IMMEDIATE) != 0;
    qp->expected = (qp->expected + 1) & TCAV_NUMBER_MASK;
    if (in->has_receive) {
        const struct ibv_wc wc = {
            .wr_id = in->receive.id,
            .status = IBV_WC_SUCCESS,
            .opcode = in->kind == TCAV_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
            .byte_len = in->length,
            .imm_data = immediate ? header->immediate : 0,
            .qp_num = qp->number,
            .src_qp = qp->remote_number,
            .wc_flags = immediate ? IBV_WC_WITH_IMM : 0,
        };
        tcav_cq_push(qp->recv_cq, &wc, (header->flags & TCAV_SOLICITED) != 0);
    }
    in->active = in->has_receive = false;
}

static void data_packet(struct tcav_qp *qp, const struct tcav_header *header, const unsigned char *payload)
{
    if (!qp->inbound.active && !begin(qp, header, header->kind)) {
        return;
    }
    if (header->offset != qp->inbound.offset || !data_store(qp, header, header->offset, payload, header->bytes)) {
        return;
    }
    qp->inbound.offset += header->bytes;
    if (qp->inbound.offset == header->length) {
        message_end(qp, header);
    }
}

static struct tcav_location inbound_location(const struct tcav_qp *qp)
{
    const struct tcav_inbound *in = &qp->inbound;
    if (in->kind == TCAV_SEND) {
        return tcav_list_location(qp->pd, in->receive.sge, in->receive.sges, 0, in->length);
    }
    const struct tcav_mr *mr = tcav_mr_find(qp->pd, in->key, in->address, in->length, IBV_ACCESS_REMOTE_WRITE);
    return mr != NULL && mr->location.block != TCAV_NOWHERE ? tcav_mr_location(mr, in->address)
                                                            : (struct tcav_location){.block = TCAV_NOWHERE};
}

static void ask_packet(struct tcav_qp *qp, const struct tcav_header *header)
{
    if (!begin(qp, header, header->kind == TCAV_ASK_SEND ? TCAV_SEND : TCAV_WRITE)) {
        return;
    }
    qp->answer = (struct tcav_header){.qp = qp->remote_number,
                                      .kind = TCAV_GRANT,
                                      .message = header->message,
                                      .bytes = sizeof qp->answer_location,
                                      .source_qp = qp->number};
    qp->answer_location = inbound_location(qp);
    if (qp->answer_location.block != TCAV_NOWHERE &&
        !tcav_grant_add(qp, header->message, qp->answer_location, header->length, false)) {
        qp->answer_location.block = TCAV_NOWHERE;
    }
    qp->inbound.location = qp->answer_location;
    qp->inbound.granted = qp->answer_location.block != TCAV_NOWHERE;
    qp->answer_due = true;
}

static void done_packet(struct tcav_qp *qp, const struct tcav_header *header, const unsigned char *payload)
{
    if (!qp->inbound.active || !qp->inbound.granted) {
        return;
    }
    uint32_t before, bytes = tcav_move_split(qp->inbound.location.offset, header->length, &before);
    if (header->bytes != header->length - bytes) {
        fail(qp, header->message, TCAV_NAK_INVALID, HCA_FAULT_PACKET); // not sent by this library
        return;
    }
    if (data_store(qp, header, 0, payload, before) &&
        data_store(qp, header, before + bytes, payload + before, header->bytes - before)) {
        message_end(qp, header);
    }
}

// --- reads and atomics ----------------------------------------------------------------------------------------------

static struct tcav_job *job_add(struct tcav_qp *qp, const struct tcav_header *header)
{
    struct tcav_job *job = &qp->jobs[(qp->job_head + qp->job_count++) % TCAV_READS_MAX];
    *job = (struct tcav_job){.kind = TCAV_READ,
                             .message = header->message,
                             .key = header->key,
                             .length = header->length,
                             .address = header->address};
    qp->expected = (qp->expected + 1) & TCAV_NUMBER_MASK;
    return job;
}

static bool has_resources(struct tcav_qp *qp, const struct tcav_header *header)
{
    if (qp->job_count >= qp->answers_max) { // IBA 9.7.4.1.4: more than was agreed
        fail(qp, header->message, TCAV_NAK_INVALID, HCA_FAULT_READS);
        return false;
    }
    return true;
}

static void read_packet(struct tcav_qp *qp, const struct tcav_header *header, const unsigned char *payload)
{
    if (range_check(qp, header, header->length, IBV_ACCESS_REMOTE_READ) && has_resources(qp, header)) {
        struct tcav_job *job = job_add(qp, header);
        memcpy(&job->location, payload, sizeof job->location);
    }
}

static void atomic_packet(struct tcav_qp *qp, const struct tcav_header *header, const unsigned char *payload)
{
    if ((qp->access & IBV_ACCESS_REMOTE_ATOMIC) != 0 && header->address % 8 != 0) {
        fail(qp, header->message, TCAV_NAK_INVALID, HCA_FAULT_ALIGNMENT); // IBA 9.7.4.1.5.2
        return;
    }
    if (!range_check(qp, header, 8, IBV_ACCESS_REMOTE_ATOMIC) || !has_resources(qp, header)) {
        return;
    }
    struct tcav_operands operands;
    uint64_t value;
    const struct tcav_mr *mr = tcav_mr_find(qp->pd, header->key, header->address, 8, IBV_ACCESS_REMOTE_ATOMIC);
    memcpy(&operands, payload, sizeof operands);
    if (tcav_atomic_execute(qp, mr, header, &operands, &value) != 0) {
        fail(qp, header->message, TCAV_NAK_OPERATION, HCA_FAULT_MEMORY);
        return;
    }
    struct tcav_job *job = job_add(qp, header);
    job->kind = TCAV_ATOMIC_DATA;
    job->value = value;
}

// --- dispatch -------------------------------------------------------------------------------------------------------

bool tcav_receive_packet(struct tcav_qp *qp, const struct tcav_header *header, const unsigned char *payload)
{
    if (header->source_qp != qp->remote_number || header->message != qp->expected) {
        return false;
    }
    if (qp->state == IBV_QPS_RTR && !qp->established) {
        qp->established = true; // IBA 11.6.3.1: once
        tcav_event_async(qp->pd->context, IBV_EVENT_COMM_EST, qp->user);
    }
    switch ((enum tcav_kind)header->kind) {
    case TCAV_SEND:
    case TCAV_WRITE:
        data_packet(qp, header, payload);
        break;
    case TCAV_ASK_SEND:
    case TCAV_ASK_WRITE:
        ask_packet(qp, header);
        break;
    case TCAV_DATA_DONE:
        done_packet(qp, header, payload);
        break;
    case TCAV_READ:
        read_packet(qp, header, payload);
        break;
    case TCAV_SWAP:
    case TCAV_ADD:
        atomic_packet(qp, header, payload);
        break;
    case TCAV_GRANT:
    case TCAV_READ_DATA:
    case TCAV_READ_DONE:
    case TCAV_ATOMIC_DATA:
    case TCAV_NAK:
    case TCAV_RNR:
    case TCAV_NOT_READY:
    case TCAV_RELEASE:
    case TCAV_BYE:
    case TCAV_DATAGRAM:
        break;
    }
    return true;
}
