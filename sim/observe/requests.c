// What was posted to queue pairs and what completed.
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "sim/observe/internal.h"
#include "verbs-shim/ibverbs/opcodes.h"

// Limit on the requests in all queues: a program's records are not trusted beyond it.
enum { REQUESTS_MAX = 1 << 22 };

static bool queue_grow(observe_t *observe, struct observe_queue *queue)
{
    uint32_t room = queue->room == 0 ? 16 : 2 * queue->room;
    bool possible = observe->requests + room - queue->room <= REQUESTS_MAX;
    struct observe_request *requests = possible ? malloc(room * sizeof *requests) : NULL;
    for (uint32_t i = 0; requests != NULL && i < queue->depth; i++) {
        requests[i] = queue->requests[(queue->first + i) % queue->room];
    }
    if (requests != NULL) {
        free(queue->requests);
        observe->requests += room - queue->room;
        queue->requests = requests;
        queue->room = room;
        queue->first = 0;
    }
    return requests != NULL;
}

static void queue_posted(observe_t *observe, struct observe_queue *queue, const struct observe_request *request)
{
    queue->bytes += request->bytes;
    if (queue->depth < queue->room || queue_grow(observe, queue)) {
        struct observe_request *slot = &queue->requests[(queue->first + queue->depth) % queue->room];
        *slot = *request;
        slot->number = queue->posted;
        queue->depth++;
    }
    queue->posted++;
    queue->depth_most = queue->depth > queue->depth_most ? queue->depth : queue->depth_most;
}

static bool queue_take(struct observe_queue *queue, struct observe_request *request_out)
{
    if (queue->depth == 0) {
        return false;
    }
    *request_out = queue->requests[queue->first];
    queue->first = (queue->first + 1) % queue->room;
    queue->depth--;
    return true;
}

// Completions come in the order of the requests. A request that asked for none is done when a later one is. false: the
// completed request is not known.
static bool queue_completed(struct observe_queue *queue, uint64_t wr_id, bool error,
                            struct observe_request *request_out)
{
    bool found = false;
    while (!found && queue_take(queue, request_out)) {
        found = request_out->signaled || (error && request_out->wr_id == wr_id);
    }
    return found;
}

static void active(struct observe_qp *qp, uint64_t at_ps)
{
    qp->first_ps = qp->first_ps == 0 ? at_ps : qp->first_ps;
    qp->last_ps = at_ps;
}

static bool needs_receive(uint32_t opcode)
{
    return ibverbs_opcode_has(opcode, HCA_HAS_RECEIVE);
}

// The completion queue that gets the completions of sends or receives.
static struct observe_object *cq_of(const struct observe_object *qp, bool is_receive)
{
    const struct journal_qp *made = &qp->qp.made;
    uint32_t handle = is_receive ? made->receive_cq - 1 : made->send_cq;
    return observe_object_find(qp->process, OBSERVE_CQ, qp->context, handle);
}

static void outstanding_add(const struct observe_object *qp, bool is_receive)
{
    struct observe_object *cq = cq_of(qp, is_receive);
    if (cq != NULL) {
        cq->cq.outstanding++;
    }
}

// The completion queue no longer expects the completion of a request.
static void outstanding_less(const struct observe_object *qp, bool is_receive)
{
    struct observe_object *cq = cq_of(qp, is_receive);
    if (cq != NULL) {
        cq->cq.outstanding -= cq->cq.outstanding > 0;
    }
}

static void queue_drop(struct observe_object *qp, struct observe_queue *queue, bool is_receive)
{
    struct observe_request request;
    while (queue_take(queue, &request)) {
        if (request.signaled) {
            outstanding_less(qp, is_receive);
        }
    }
}

void observe_requests_drop(struct observe_object *qp)
{
    struct observe_request request;
    queue_drop(qp, &qp->qp.send, false);
    queue_drop(qp, &qp->qp.receive, true);
    while (queue_take(&qp->qp.messages, &request)) {
    }
}

static void send_note(observe_process_t *process, uint64_t at_ps, uint64_t took_ps, const struct journal_record *record)
{
    const struct journal_send *send = &record->send;
    struct observe_object *object = observe_qp_find(process, record->context, send->qp);
    if (object == NULL) {
        return;
    }
    struct observe_qp *qp = &object->qp;
    unsigned opcode = send->opcode < OBSERVE_OPCODES ? send->opcode : OBSERVE_OPCODES - 1;
    const struct observe_request request = {.wr_id = send->wr_id,
                                            .posted_ps = at_ps - (took_ps < at_ps ? took_ps : at_ps),
                                            .address = send->address,
                                            .bytes = send->bytes,
                                            .opcode = send->opcode,
                                            .signaled = send->signaled != 0};
    queue_posted(process->observe, &qp->send, &request);
    if (send->signaled) {
        outstanding_add(object, false);
    }
    if (process->observe->explained != NULL && needs_receive(send->opcode)) {
        queue_posted(process->observe, &qp->messages, &request);
    } else if (process->observe->explained != NULL && send->opcode == IBV_WR_RDMA_WRITE) {
        observe_arrivals_post(object, &request, send->remote_address);
    }
    process->observe->datagrams += qp->made.type == IBV_QPT_UD;
    qp->sends[opcode]++;
    qp->send_bytes[opcode] += send->bytes;
    qp->signaled += send->signaled != 0;
    active(qp, at_ps);
}

static void receive_note(observe_process_t *process, uint64_t at_ps, const struct journal_record *record)
{
    struct observe_object *object = observe_qp_find(process, record->context, record->receive.queue);
    if (object != NULL) {
        queue_posted(process->observe, &object->qp.receive,
                     &(struct observe_request){.wr_id = record->receive.wr_id,
                                               .posted_ps = at_ps,
                                               .address = record->receive.address,
                                               .bytes = record->receive.bytes,
                                               .signaled = true});
        outstanding_add(object, true);
    }
}

// request: the send request that completes.
static void completion_explain(struct observe_object *qp, uint64_t at_ps, const struct journal_completion *completion,
                               const struct observe_request *request)
{
    struct observe_object *peer = observe_peer(qp);
    struct observe_request message;
    if (completion->is_receive && peer != NULL && queue_take(&peer->qp.messages, &message)) {
        observe_explain(peer->process, peer->number, qp->process, &message, at_ps);
    } else if (!completion->is_receive && request != NULL && !needs_receive(request->opcode)) {
        observe_explain(qp->process, qp->number, peer != NULL ? peer->process : qp->process, request, at_ps);
    }
}

static void completion_note(observe_process_t *process, uint64_t at_ps, const struct journal_record *record)
{
    const struct journal_completion *completion = &record->completion;
    struct observe_object *object = observe_qp_find(process, record->context, completion->qp);
    struct observe_object *cq = observe_object_find(process, OBSERVE_CQ, record->context, completion->cq);
    bool error = completion->status != IBV_WC_SUCCESS;
    if (cq != NULL) {
        cq->cq.taken++;
        cq->cq.errors += error;
    }
    if (object == NULL) {
        return;
    }
    struct observe_qp *qp = &object->qp;
    if (error && completion->status != IBV_WC_WR_FLUSH_ERR) {
        qp->state = IBV_QPS_ERR;
    }
    if (!error && completion->is_receive) {
        observe_pool_received(object, completion);
    }
    struct observe_queue *queue = completion->is_receive ? &qp->receive : &qp->send;
    struct observe_request request;
    queue->completed++;
    queue->errors += error;
    bool known = queue_completed(queue, completion->wr_id, error, &request);
    if (known && request.signaled) {
        outstanding_less(object, completion->is_receive != 0);
    }
    active(qp, at_ps);
    if (process->observe->explained != NULL && !error) {
        completion_explain(object, at_ps, completion, known ? &request : NULL);
    }
}

// --- the board's DMA ------------------------------------------------------------------------------------------------

static void dma_note(observe_process_t *process, const struct observe_call *call, const struct journal_record *record)
{
    uint32_t channel = record->dma.channel;
    if (channel >= OBSERVE_DMA_CHANNELS) {
        return;
    }
    struct observe_request *dma = &process->dmas[channel];
    if (record->call == JOURNAL_TCA_START) {
        process->dma_count++;
        process->dma_bytes += record->dma.bytes;
        *dma = (struct observe_request){.posted_ps = call->at_ps - (call->took_ps < call->at_ps ? call->took_ps : 0),
                                        .bytes = record->dma.bytes,
                                        .opcode = OBSERVE_OPCODE_DMA};
    } else if (dma->posted_ps != 0) {
        if (process->observe->explained != NULL) {
            observe_explain(process, 0, process, dma, call->at_ps);
        }
        *dma = (struct observe_request){0};
    }
}

// --- records --------------------------------------------------------------------------------------------------------

void observe_requests_note(observe_process_t *process, const struct observe_call *call,
                           const struct journal_record *record)
{
    if (record->error != 0) {
        return;
    }
    switch (record->call) {
    case JOURNAL_POST_SEND:
        send_note(process, call->at_ps, call->took_ps, record);
        break;
    case JOURNAL_POST_RECV:
        receive_note(process, call->at_ps, record);
        observe_pool_posted(process, record);
        break;
    case JOURNAL_POST_SRQ_RECV:
        observe_pool_posted(process, record);
        break;
    case JOURNAL_POLL_CQ:
        completion_note(process, call->at_ps, record);
        break;
    case JOURNAL_TCA_START:
    case JOURNAL_TCA_WAIT:
        dma_note(process, call, record);
        break;
    }
}

void observe_queues_free(struct observe_object *object)
{
    struct observe_queue *const queues[] = {&object->qp.send, &object->qp.receive, &object->qp.messages};
    for (unsigned i = 0; i < 3 && object->kind == OBSERVE_QP; i++) {
        object->process->observe->requests -= queues[i]->room;
        free(queues[i]->requests);
    }
}
