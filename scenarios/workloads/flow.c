#include "scenarios/workloads/flow.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "verbs-shim/ibverbs/device.h"

#define PORT             1
#define QKEY             0x11111111u // as in perftest
#define GRH_BYTES        40u
#define PAGE_BYTES       4096u
#define QUEUE_SPARE      32u // requests beside the measured ones; a scenario's greatest depth leaves room for them
#define INLINE_STEP      4u
#define MEETING          UINT64_MAX
#define LEAST_ITERATIONS 4u

int flow_give_up(const struct flow_end *end, int error, const char *what)
{
    end->workload->fail(end->workload->ctx, "%s of %llu B: %s: %s", end->program, (unsigned long long)end->bytes, what,
                        strerror(error));
    return -error;
}

uint64_t flow_now_ps(const struct flow_end *end)
{
    return end->backend->ops->time_ps(end->backend->ctx);
}

bool flow_is_atomic(const struct flow_end *end)
{
    enum workload_operation operation = end->workload->verbs.operation;
    return operation == WORKLOAD_COMPARE_SWAP || operation == WORKLOAD_FETCH_ADD;
}

bool flow_is_asked(const struct flow_end *end)
{
    return end->workload->verbs.operation == WORKLOAD_READ || flow_is_atomic(end);
}

uint32_t flow_iterations(const struct flow_end *end)
{
    const struct workload *w = end->workload;
    if (w->verbs.volume_bytes == 0) {
        return w->iterations;
    }
    uint64_t fitting = w->verbs.volume_bytes / end->bytes;
    fitting = fitting > LEAST_ITERATIONS ? fitting : LEAST_ITERATIONS;
    return fitting > w->iterations ? w->iterations : (uint32_t)fitting;
}

bool flow_is_received(const struct flow_end *end)
{
    return !flow_is_asked(end) && end->workload->verbs.operation != WORKLOAD_WRITE;
}

static bool is_datagram(const struct flow_end *end)
{
    return end->workload->verbs.transport == WORKLOAD_UD;
}

// --- set-up ---------------------------------------------------------------------------------------------------------

static int device_open(struct flow_end *end)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; list != NULL && i < count && end->context == NULL; i++) {
        if (strcmp(ibv_get_device_name(list[i]), end->workload->verbs.device) == 0) {
            end->context = ibv_open_device(list[i]);
        }
    }
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    if (end->context == NULL) {
        return flow_give_up(end, ENODEV, end->workload->verbs.device);
    }
    end->pd = ibv_alloc_pd(end->context);
    return end->pd != NULL ? 0 : flow_give_up(end, errno, "ibv_alloc_pd");
}

static int memories_alloc(struct flow_end *end)
{
    const struct workload *w = end->workload;
    uint64_t most = w->verbs.beside_bytes;
    if (w->rank < 2) {
        most = region_largest(w->bytes, w->bytes_count);
    }
    size_t bytes = (size_t)most, old_bytes = (size_t)end->depth * FLOW_ATOMIC_BYTES;
    size_t source_bytes = flow_is_atomic(end) ? old_bytes : bytes;
    size_t lead_bytes = is_datagram(end) ? PAGE_BYTES : 0; // room for a GRH
    int error = flow_memory_alloc(end, &end->source, w->source_gpu, 0, source_bytes, end->slots);
    return error == 0 ? flow_memory_alloc(end, &end->target, w->destination_gpu, lead_bytes, bytes, end->slots) : error;
}

// Verbs do not report the limit of inline data. For "as much as possible" the program asks for less until it is
// granted.
static int queue_pair_create(struct flow_end *end, uint32_t qp)
{
    static const enum ibv_qp_type types[] = {
        [WORKLOAD_RC] = IBV_QPT_RC, [WORKLOAD_UC] = IBV_QPT_UC, [WORKLOAD_UD] = IBV_QPT_UD};
    const struct workload_verbs *verbs = &end->workload->verbs;
    while (end->qps[qp] == NULL) {
        struct ibv_qp_init_attr init = {
            .send_cq = end->send_cq,
            .recv_cq = end->receive_cq,
            .cap = {end->depth + QUEUE_SPARE, verbs->receive_depth, 1, 1, end->inline_bytes},
            .qp_type = types[verbs->transport]};
        end->qps[qp] = ibv_create_qp(end->pd, &init);
        if (end->qps[qp] == NULL && (errno != EINVAL || !verbs->inline_or_less || end->inline_bytes < INLINE_STEP)) {
            return flow_give_up(end, errno, "ibv_create_qp");
        }
        end->inline_bytes -= end->qps[qp] == NULL ? INLINE_STEP : 0;
    }
    return 0;
}

static int queues_create(struct flow_end *end)
{
    const struct workload_verbs *verbs = &end->workload->verbs;
    int sends = (int)(end->qp_count * (end->depth + QUEUE_SPARE));
    end->send_cq = ibv_create_cq(end->context, sends, NULL, NULL, 0);
    end->receive_cq = ibv_create_cq(end->context, (int)(end->qp_count * verbs->receive_depth), NULL, NULL, 0);
    if (end->send_cq == NULL || end->receive_cq == NULL) {
        return flow_give_up(end, errno, "ibv_create_cq");
    }
    for (uint32_t i = 0; i < end->qp_count; i++) {
        int error = queue_pair_create(end, i);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

// Sends a letter to the other end of the pair; also a barrier of all ranks.
static void letters_gather(struct flow_end *end, const struct flow_letter *mine)
{
    struct flow_letter all[WORKLOAD_RANKS_MAX];
    const struct workload *w = end->workload;
    w->gather(w->ctx, mine, all, sizeof *mine);
    end->peer = all[w->rank ^ 1];
}

static int letter_write(struct flow_end *end, struct ibv_port_attr *port_out)
{
    int error = ibv_query_port(end->context, PORT, port_out);
    if (error != 0) {
        return flow_give_up(end, error, "ibv_query_port");
    }
    struct flow_letter mine = {
        .source_address = flow_memory_address(&end->source, 0),
        .target_address = flow_memory_address(&end->target, 0),
        .source_key = end->source.mr->rkey,
        .target_key = end->target.mr->rkey,
        .lid = port_out->lid,
    };
    for (uint32_t i = 0; i < end->qp_count; i++) {
        mine.qpns[i] = end->qps[i]->qp_num;
    }
    letters_gather(end, &mine);
    return 0;
}

static int transition_mask(enum workload_transport transport, enum ibv_qp_state to)
{
    const int connect = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    const int reliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    bool datagram = transport == WORKLOAD_UD, rc = transport == WORKLOAD_RC;
    if (to == IBV_QPS_INIT) {
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    }
    if (to == IBV_QPS_RTR) {
        return IBV_QP_STATE | (datagram ? 0 : connect) | (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    }
    return IBV_QP_STATE | IBV_QP_SQ_PSN | (rc ? reliable : 0);
}

// The number of outstanding reads and atomics: as many as the device allows, as in perftest.
static int reads_of(struct flow_end *end, uint8_t *reads_out)
{
    struct ibv_device_attr attr;
    int error = ibv_query_device(end->context, &attr);
    if (error != 0) {
        return flow_give_up(end, error, "ibv_query_device");
    }
    int least = attr.max_qp_rd_atom < attr.max_qp_init_rd_atom ? attr.max_qp_rd_atom : attr.max_qp_init_rd_atom;
    *reads_out = (uint8_t)(least < UINT8_MAX ? least : UINT8_MAX);
    return 0;
}

static int connect_all(struct flow_end *end, const struct ibv_port_attr *port)
{
    enum workload_transport transport = end->workload->verbs.transport;
    uint8_t reads = 0;
    int error = reads_of(end, &reads);
    struct ibv_qp_attr attr = {.path_mtu = port->active_mtu,
                               .qkey = QKEY,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
                               .ah_attr = {.dlid = end->peer.lid, .port_num = PORT},
                               .max_rd_atomic = reads,
                               .max_dest_rd_atomic = reads,
                               .min_rnr_timer = 12,
                               .port_num = PORT,
                               .timeout = end->workload->verbs.qp_timeout,
                               .retry_cnt = end->workload->verbs.retry_count,
                               .rnr_retry = 7};
    if (flow_is_atomic(end)) {
        attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
    }
    for (uint32_t i = 0; error == 0 && i < end->qp_count; i++) {
        attr.dest_qp_num = end->peer.qpns[i];
        for (enum ibv_qp_state state = IBV_QPS_INIT; error == 0 && state <= IBV_QPS_RTS; state++) {
            attr.qp_state = state;
            error = ibv_modify_qp(end->qps[i], &attr, transition_mask(transport, state));
        }
    }
    if (error == 0 && transport == WORKLOAD_UD) {
        end->ah = ibv_create_ah(end->pd, &attr.ah_attr);
        error = end->ah != NULL ? 0 : errno;
    }
    return error == 0 ? 0 : flow_give_up(end, error, "connecting the queue pairs");
}

// --- receives -------------------------------------------------------------------------------------------------------

// A receive of the whole slot; the data of a datagram is preceded by a GRH or its room.
static int slot_receive(struct flow_end *end, uint32_t qp, uint32_t slot)
{
    const struct flow_memory *target = &end->target;
    uint32_t before = is_datagram(end) ? GRH_BYTES : 0;
    struct ibv_sge sge = {.addr = flow_memory_address(target, slot) - before,
                          .length = (uint32_t)(target->stride_bytes - target->lead_bytes) + before,
                          .lkey = target->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    int error = ibv_post_recv(end->qps[qp], &wr, &bad);
    return error == 0 ? 0 : flow_give_up(end, error, "ibv_post_recv");
}

static int receive_post(struct flow_end *end, uint32_t qp)
{
    return slot_receive(end, qp, qp);
}

int flow_receive_slot(struct flow_end *end, uint32_t slot)
{
    return slot_receive(end, 0, slot);
}

static int receives_post(struct flow_end *end)
{
    int error = 0;
    for (uint32_t qp = 0; error == 0 && qp < end->qp_count; qp++) {
        for (uint32_t i = 0; error == 0 && i < end->workload->verbs.receive_depth; i++) {
            error = receive_post(end, qp);
        }
    }
    return error;
}

static int completion_refuse(const struct flow_end *end, const struct ibv_wc *wc, const char *what)
{
    end->workload->fail(end->workload->ctx, "%s of %llu B: %s: %s", end->program, (unsigned long long)end->bytes, what,
                        ibv_wc_status_str(wc->status));
    return -EIO;
}

static int bad_data(const struct flow_end *end, const char *what, long long found)
{
    end->workload->fail(end->workload->ctx, "%s of %llu B: %s %lld is wrong", end->program,
                        (unsigned long long)end->bytes, what, found);
    return -EBADMSG;
}

static int received_take(struct flow_end *end, const struct ibv_wc *wc)
{
    enum workload_operation operation = end->workload->verbs.operation;
    uint32_t qp = (uint32_t)wc->wr_id, bytes = wc->byte_len - (is_datagram(end) ? GRH_BYTES : 0);
    if (wc->status != IBV_WC_SUCCESS) {
        return completion_refuse(end, wc, "a receive");
    }
    if (bytes == 0) {
        end->met++;
    } else {
        bool immediate = operation == WORKLOAD_SEND_IMM || operation == WORKLOAD_WRITE_IMM;
        if (bytes != end->bytes) {
            return bad_data(end, "a message's length of", bytes);
        }
        if (immediate && be32toh(wc->imm_data) != end->arrived[qp]) {
            return bad_data(end, "the immediate", be32toh(wc->imm_data));
        }
        end->arrived[qp]++;
        end->arrived_all++;
    }
    return receive_post(end, qp);
}

int flow_take_received(struct flow_end *end, int most)
{
    struct ibv_wc wcs[FLOW_BATCH];
    int count = ibv_poll_cq(end->receive_cq, most < FLOW_BATCH ? most : FLOW_BATCH, wcs), error = 0;
    for (int i = 0; error == 0 && i < count; i++) {
        error = received_take(end, &wcs[i]);
    }
    return error;
}

int flow_wait_received(struct flow_end *end, int most)
{
    int error = ibverbs_cq_wait(end->receive_cq, 0);
    return error == 0 ? flow_take_received(end, most) : flow_give_up(end, error, "waiting for a message");
}

// --- requests -------------------------------------------------------------------------------------------------------

static enum ibv_wr_opcode opcode_of(enum workload_operation operation)
{
    static const enum ibv_wr_opcode opcodes[] = {
#define VERBS_OPERATION(ID, name, verb) [WORKLOAD_##ID] = IBV_WR_##verb,
#define ACP_OPERATION(ID, name)
#include "sim/scenario/operations.def"
    };
    return opcodes[operation];
}

// The old value of the word at the n-th atomic is n.
static size_t old_offset(const struct flow_end *end, uint32_t n)
{
    return (size_t)(n % end->depth) * FLOW_ATOMIC_BYTES;
}

static void request_address(const struct flow_end *end, uint32_t qp, uint32_t slot, struct ibv_send_wr *wr,
                            struct ibv_sge *sge)
{
    const struct flow_letter *peer = &end->peer;
    uint32_t n = end->sent[qp];
    uint64_t target = peer->target_address + slot * end->target.stride_bytes;
    bool reads = wr->opcode == IBV_WR_RDMA_READ;
    const struct flow_memory *local = reads ? &end->target : &end->source;
    *sge = (struct ibv_sge){flow_memory_address(local, slot), (uint32_t)end->bytes, local->mr->lkey};
    if (is_datagram(end)) {
        wr->wr.ud.ah = end->ah;
        wr->wr.ud.remote_qpn = peer->qpns[qp];
        wr->wr.ud.remote_qkey = QKEY;
    } else if (flow_is_atomic(end)) {
        sge->addr += old_offset(end, n);
        wr->wr.atomic.remote_addr = target;
        wr->wr.atomic.rkey = peer->target_key;
        wr->wr.atomic.compare_add = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 1 : n;
        wr->wr.atomic.swap = n + 1;
    } else {
        wr->wr.rdma.remote_addr = reads ? peer->source_address + slot * end->source.stride_bytes : target;
        wr->wr.rdma.rkey = reads ? peer->source_key : peer->target_key;
    }
}

static int slot_post(struct flow_end *end, uint32_t qp, uint32_t slot, uint64_t id, bool signaled)
{
    const struct workload_verbs *verbs = &end->workload->verbs;
    bool inlined = !flow_is_asked(end) && end->source.device == NULL && end->bytes <= end->inline_bytes;
    struct ibv_sge sge;
    struct ibv_send_wr *bad, wr = {.wr_id = id,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = opcode_of(verbs->operation),
                                   .send_flags = (signaled ? IBV_SEND_SIGNALED : 0u) | (inlined ? IBV_SEND_INLINE : 0u),
                                   .imm_data = htobe32(end->sent[qp])};
    request_address(end, qp, slot, &wr, &sge);
    end->sent[qp]++;
    int error = ibv_post_send(end->qps[qp], &wr, &bad);
    return error == 0 ? 0 : flow_give_up(end, error, "ibv_post_send");
}

int flow_post(struct flow_end *end, uint32_t qp, bool signaled)
{
    return slot_post(end, qp, qp, (uint64_t)(end->sent[qp] + 1) << 8 | qp, signaled);
}

int flow_post_slot(struct flow_end *end, uint32_t slot)
{
    return slot_post(end, 0, flow_is_atomic(end) ? 0 : slot, slot, true);
}

// Takes all requests that a completion stands for.
static int sent_take(struct flow_end *end, const struct ibv_wc *wc)
{
    if (wc->status != IBV_WC_SUCCESS) {
        return completion_refuse(end, wc, "a request");
    }
    if (wc->wr_id == MEETING) {
        return 0;
    }
    uint32_t qp = wc->wr_id & 0xff, done = (uint32_t)(wc->wr_id >> 8);
    for (uint32_t n = end->done[qp]; flow_is_atomic(end) && end->source.device == NULL && n < done; n++) {
        uint64_t old;
        memcpy(&old, flow_memory_data(&end->source, qp) + old_offset(end, n), sizeof old);
        if (old != n) {
            return bad_data(end, "the word's old value", (long long)old);
        }
    }
    end->done_all += done - end->done[qp];
    end->done[qp] = done;
    return 0;
}

int flow_take_sent(struct flow_end *end)
{
    struct ibv_wc wcs[FLOW_BATCH];
    int count = ibv_poll_cq(end->send_cq, FLOW_BATCH, wcs), error = 0;
    for (int i = 0; error == 0 && i < count; i++) {
        error = sent_take(end, &wcs[i]);
    }
    return error;
}

int flow_wait_sent(struct flow_end *end)
{
    int error = ibverbs_cq_wait(end->send_cq, 0);
    return error == 0 ? flow_take_sent(end) : flow_give_up(end, error, "waiting for a request");
}

int flow_wait_done(struct flow_end *end)
{
    int error = 0;
    for (uint32_t qp = 0; qp < end->qp_count; qp++) {
        while (error == 0 && end->done[qp] != end->sent[qp]) {
            error = flow_wait_sent(end);
        }
    }
    return error;
}

// Posts an empty message on each queue pair, after everything that was sent there. Few of them ask for a completion:
// taking it is work that could fall into the measured time.
static int meeting_post(struct flow_end *end, uint32_t qp)
{
    bool signaled = end->meetings % (QUEUE_SPARE / 2) == 0;
    struct ibv_send_wr *bad,
        wr = {.wr_id = MEETING, .opcode = IBV_WR_SEND, .send_flags = signaled ? IBV_SEND_SIGNALED : 0u};
    if (is_datagram(end)) {
        wr.wr.ud.ah = end->ah;
        wr.wr.ud.remote_qpn = end->peer.qpns[qp];
        wr.wr.ud.remote_qkey = QKEY;
    }
    int error = ibv_post_send(end->qps[qp], &wr, &bad);
    return error == 0 ? 0 : flow_give_up(end, error, "ibv_post_send");
}

int flow_meet(struct flow_end *end)
{
    end->meetings++;
    int error = flow_take_sent(end);
    for (uint32_t qp = 0; error == 0 && qp < end->qp_count; qp++) {
        error = meeting_post(end, qp);
    }
    while (error == 0 && end->met < end->meetings * end->qp_count) {
        error = flow_wait_received(end, FLOW_BATCH);
    }
    return error;
}

// --- life -----------------------------------------------------------------------------------------------------------

static int open_with(struct flow_end *end, struct workload *workload, const char *program, uint32_t slots)
{
    const struct backend_process *process = backend_current();
    const struct workload_verbs *verbs = &workload->verbs;
    if (process == NULL || verbs->queue_pairs > FLOW_QPS_MAX) {
        return -EINVAL;
    }
    *end = (struct flow_end){.workload = workload,
                             .program = program,
                             .backend = &process->backend,
                             .qp_count = verbs->queue_pairs,
                             .slots = slots,
                             .serves = strcmp(verbs->device, "tca0") == 0,
                             .inline_bytes = verbs->inline_bytes,
                             .depth = verbs->depth,
                             .cq_mod = verbs->cq_mod < verbs->depth ? verbs->cq_mod : verbs->depth};
    struct ibv_port_attr port;
    int error = device_open(end);
    if (error == 0) {
        error = memories_alloc(end);
    }
    if (error == 0) {
        error = queues_create(end);
    }
    if (error == 0) {
        error = letter_write(end, &port);
    }
    if (error == 0) {
        error = connect_all(end, &port);
    }
    return error;
}

int flow_open(struct flow_end *end, struct workload *workload, const char *program)
{
    int error = open_with(end, workload, program, workload->verbs.queue_pairs);
    if (error == 0) {
        error = receives_post(end);
    }
    return error == 0 ? flow_barrier(end) : error;
}

int flow_open_slots(struct flow_end *end, struct workload *workload, const char *program, uint32_t slots)
{
    return open_with(end, workload, program, slots);
}

void flow_close(struct flow_end *end)
{
    for (uint32_t i = 0; i < end->qp_count; i++) {
        (void)ibv_destroy_qp(end->qps[i]);
    }
    if (end->ah != NULL) {
        (void)ibv_destroy_ah(end->ah);
    }
    (void)ibv_destroy_cq(end->send_cq);
    (void)ibv_destroy_cq(end->receive_cq);
    flow_memory_free(end, &end->source);
    flow_memory_free(end, &end->target);
    (void)ibv_dealloc_pd(end->pd);
    (void)ibv_close_device(end->context);
}
