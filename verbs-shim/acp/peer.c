// Connections, at first use: two ranks exchange their queue pair numbers by datagrams, as MVAPICH2's on-demand
// connections do.
//
// A rank that needs a connection creates its queue pair and sends a request. The other rank does the same, moves its
// own queue pair to RTS, and answers. A request that arrived before the peer's queue pair can receive would be lost for
// a retransmission timeout, so a connection is usable when the own queue pair is ready and the peer has reported that
// its own is. Datagrams may be lost: a waiting rank retransmits its request with exponential backoff.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/acp/internal.h"

enum {
    GRH_BYTES = 40,
    ASK_AGAIN_NS = 1000000, // doubled for each retransmission
    ASK_APART_NS = 5000,
    ASK_APART = 256,
    ASKED_MAX = 12, // 4 s in total
    RETRIES = 7,
    TIMEOUT_67_MS = 14,
    RNR_TIMER_640_US = 12
};

// The contents of a datagram.
struct meeting {
    uint32_t rank;
    uint32_t qpn;
    uint16_t ready; // the sender's queue pair is connected to the receiver's and can receive
    uint16_t ask;   // the sender wants an answer
    uint32_t job;   // the same in both ranks
};
_Static_assert(GRH_BYTES + sizeof(struct meeting) <= ACPB_MEETING_BYTES, "behind a GRH");

static uint64_t now_ps(const struct acpb_process *process)
{
    return process->backend->ops->time_ps(process->backend->ctx);
}

// --- datagrams ------------------------------------------------------------------------------------------------------

static int receive_post(struct acpb_process *process, unsigned slot)
{
    struct ibv_sge sge = {(uintptr_t)process->control->meetings[slot], ACPB_MEETING_BYTES, process->control_mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};
    return -ibv_post_recv(process->meeting_qp, &wr, &bad);
}

int acpb_meetings_post(struct acpb_process *process)
{
    int error = 0;
    for (unsigned i = 0; error == 0 && i < ACPB_MEETINGS; i++) {
        error = receive_post(process, i);
    }
    return error;
}

// false: no buffer is free, so nothing is sent.
static bool meeting_send(struct acpb_process *process, const struct acpb_peer *peer, bool ask)
{
    const struct acpb_starter *starter = &process->starters[peer->rank];
    struct ibv_ah_attr attr = {.dlid = starter->lid, .port_num = process->port_number};
    const struct meeting meeting = {.rank = process->rank,
                                    .qpn = peer->qp->qp_num,
                                    .ready = peer->link >= ACPB_LINK_CAN_GET,
                                    .ask = ask,
                                    .job = process->job};
    unsigned slot = 0;
    while (slot < ACPB_MEETINGS && process->meeting_ahs[slot] != NULL) {
        slot++;
    }
    if (slot == ACPB_MEETINGS) {
        return false;
    }
    process->meeting_ahs[slot] = ibv_create_ah(process->pd, &attr);
    if (process->meeting_ahs[slot] == NULL) {
        return false;
    }
    uint8_t *bytes = process->control->meetings[ACPB_MEETINGS + slot];
    memcpy(bytes, &meeting, sizeof meeting);
    struct ibv_sge sge = {(uintptr_t)bytes, sizeof meeting, process->control_mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = ACPB_MEETINGS + slot, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    wr.wr.ud.ah = process->meeting_ahs[slot];
    wr.wr.ud.remote_qpn = starter->meeting_qpn;
    wr.wr.ud.remote_qkey = ACPB_MEETING_QKEY;
    if (ibv_post_send(process->meeting_qp, &wr, &bad) != 0) {
        (void)ibv_destroy_ah(process->meeting_ahs[slot]);
        process->meeting_ahs[slot] = NULL;
        return false;
    }
    return true;
}

// --- queue pairs ----------------------------------------------------------------------------------------------------

static int queue_pair_create(struct acpb_process *process, struct acpb_peer *peer)
{
    struct ibv_qp_init_attr init = {
        .send_cq = process->cq, .recv_cq = process->cq, .cap = {1, 0, 1, 0, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = process->port_number,
                               .qp_access_flags =
                                   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
    peer->qp = ibv_create_qp(process->pd, &init);
    if (peer->qp == NULL) {
        return -errno;
    }
    process->queue_pairs++;
    return -ibv_modify_qp(peer->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

// One outstanding read or atomic in each direction.
static int queue_pair_connect(struct acpb_process *process, struct acpb_peer *peer, uint32_t qpn)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = process->port.active_mtu,
                               .dest_qp_num = qpn,
                               .ah_attr = {.dlid = process->starters[peer->rank].lid, .port_num = process->port_number},
                               .max_rd_atomic = 1,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = RNR_TIMER_640_US,
                               .timeout = TIMEOUT_67_MS,
                               .retry_cnt = RETRIES,
                               .rnr_retry = RETRIES};
    int error = ibv_modify_qp(peer->qp, &attr,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr.qp_state = IBV_QPS_RTS;
    if (error == 0) {
        error = ibv_modify_qp(peer->qp, &attr,
                              IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_MAX_QP_RD_ATOMIC);
    }
    return -error;
}

// --- peers ----------------------------------------------------------------------------------------------------------

struct acpb_peer *acpb_peer_get(struct acpb_process *process, uint32_t rank)
{
    struct acpb_peer *peer = process->peers[rank];
    if (peer != NULL) {
        return peer;
    }
    peer = calloc(1, sizeof *peer);
    int error = peer != NULL ? 0 : -ENOMEM;
    if (error == 0) {
        peer->rank = rank;
        error = queue_pair_create(process, peer);
    }
    if (error != 0) {
        acpb_fail(process, "a queue pair for rank %u: %s", rank, strerror(-error));
        if (peer != NULL && peer->qp != NULL) {
            (void)ibv_destroy_qp(peer->qp);
            process->queue_pairs--;
        }
        free(peer);
        return NULL;
    }
    process->peers[rank] = peer;
    if (process->peers_first == NULL) {
        process->peers_first = peer;
    } else {
        process->peers_last->next = peer;
    }
    process->peers_last = peer;
    process->peers_count++;
    return peer;
}

static void ask(struct acpb_process *process, struct acpb_peer *peer)
{
    // Ranks that request from one rank at the same time retransmit at different times.
    uint64_t wait_ns = ((uint64_t)ASK_AGAIN_NS << peer->asked) + (uint64_t)ASK_APART_NS * (process->rank % ASK_APART);
    peer->asked += meeting_send(process, peer, true);
    peer->ask_again_ps = now_ps(process) + wait_ns * 1000;
}

void acpb_peer_ask(struct acpb_process *process, struct acpb_peer *peer)
{
    if (peer->asking) {
        return;
    }
    peer->asking = true;
    process->asking++;
    ask(process, peer);
}

bool acpb_peers_ask_again(struct acpb_process *process)
{
    if (process->asking == 0) {
        return false;
    }
    uint64_t now = now_ps(process);
    bool asked = false;
    for (struct acpb_peer *peer = process->peers_first; peer != NULL; peer = peer->next) {
        if (!peer->asking || now < peer->ask_again_ps) {
            continue;
        }
        if (peer->asked == ASKED_MAX) {
            acpb_fail(process, "rank %u does not answer", peer->rank);
            return true;
        }
        ask(process, peer);
        asked = true;
    }
    return asked;
}

uint64_t acpb_peers_pause_ns(const struct acpb_process *process)
{
    return process->asking != 0 || process->busy != 0 ? ASK_AGAIN_NS / 2 : 0;
}

static void usable(struct acpb_process *process, struct acpb_peer *peer)
{
    peer->link = ACPB_LINK_USABLE;
    process->asking -= peer->asking;
    peer->asking = false;
    acpb_peer_advance(process, peer);
}

static void meeting_take(struct acpb_process *process, const struct meeting *meeting)
{
    if (meeting->rank >= process->ranks || meeting->rank == process->rank || meeting->job != process->job) {
        return; // from another job
    }
    struct acpb_peer *peer = acpb_peer_get(process, meeting->rank);
    if (peer == NULL) {
        return; // the process has failed
    }
    bool changed = peer->link < ACPB_LINK_CAN_GET;
    if (changed) {
        int error = queue_pair_connect(process, peer, meeting->qpn);
        if (error != 0) {
            acpb_fail(process, "the connection to rank %u: %s", peer->rank, strerror(-error));
            return;
        }
        peer->link = ACPB_LINK_CAN_GET;
    }
    if (meeting->ask != 0 || changed) {
        (void)meeting_send(process, peer, false);
    }
    if (meeting->ready != 0 && peer->link == ACPB_LINK_CAN_GET) {
        usable(process, peer);
    }
}

void acpb_meeting_arrived(struct acpb_process *process, const struct ibv_wc *wc)
{
    unsigned slot = (unsigned)wc->wr_id;
    if (slot >= ACPB_MEETINGS) { // a datagram has been sent
        (void)ibv_destroy_ah(process->meeting_ahs[slot - ACPB_MEETINGS]);
        process->meeting_ahs[slot - ACPB_MEETINGS] = NULL;
        return;
    }
    struct meeting meeting;
    bool whole = wc->status == IBV_WC_SUCCESS && wc->byte_len == GRH_BYTES + sizeof meeting;
    memcpy(&meeting, process->control->meetings[slot] + GRH_BYTES, sizeof meeting);
    if (wc->status == IBV_WC_SUCCESS && receive_post(process, slot) != 0) {
        acpb_fail(process, "the queue pair for datagrams takes no receive");
    }
    acpb_pay(process, BACKEND_COST_DEVICE_LINE, 1);
    if (whole) {
        meeting_take(process, &meeting);
    }
}

void acpb_peers_destroy(struct acpb_process *process)
{
    while (process->peers_first != NULL) {
        struct acpb_peer *peer = process->peers_first;
        process->peers_first = peer->next;
        if (!process->abandoned) {
            (void)ibv_destroy_qp(peer->qp);
        }
        process->queue_pairs--;
        free(peer);
    }
    process->peers_last = NULL;
    process->peers_count = 0;
    process->asking = 0;
    process->busy = 0;
}
