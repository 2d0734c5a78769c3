// rsockets of datagrams (SOCK_DGRAM): a UD queue pair, and a kernel socket for first contact between two sockets.
//
// Modelled: the mechanism of rdma-core. A datagram carries a header with the sender's address, has at most 2 KiB
// including the header, and is copied on both sides unless it is sent inline. A socket that does not know the other's
// queue pair sends the datagram over the kernel socket, with its own queue pair number and LID, and gets those of the
// other in the answer; all later datagrams go over InfiniBand. Datagrams are lost if the receiver has no free buffer,
// on both paths. Not modelled: the thread that answers for a program that makes no calls (here the next call on the
// socket answers), simulated time of the kernel path, multicast groups.
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs-shim/rdmacm/internal.h"
#include "verbs-shim/rdmacm/rsocket.h"

enum { SLOT_BYTES = RS_DATAGRAM_BYTES, GRH_BYTES = 40, HEADER_V4 = 8, HEADER_V6 = 24, MET_MAX = 64, PEERS_MAX = 1024 };
#define ID_RECEIVE (UINT64_C(1) << 63)

enum meeting_kind { MEETING_DATA = 1, MEETING_ANSWER };

// A message on the kernel socket; only the used bytes of data are sent.
struct meeting {
    uint8_t kind, reserved;
    uint16_t port, lid, bytes; // bytes: length of data; the others: of the sender
    uint32_t node, qp_num;
    uint8_t data[SLOT_BYTES];
};

struct peer {
    uint32_t node, qp_num;
    uint16_t port;
    struct ibv_ah *ah; // NULL: it has not answered
};

// A received datagram: in a slot of the receive buffer, or in memory of its own.
struct arrival {
    uint32_t node;
    uint16_t port, bytes;
    unsigned slot, header; // header: bytes of the slot before the data
    uint8_t *own;          // NULL: it is in the slot
};

struct rs_datagrams {
    struct peer peers[PEERS_MAX];
    unsigned peer_count, peer_made; // peer_made: the next one to be replaced
    struct peer *connected;         // NULL: not connected
    bool refused;                   // the connected peer had no socket
    uint8_t *send_slots, *receive_slots;
    unsigned *free_slots; // requests_free of them
    struct arrival *arrivals;
    unsigned arrival_first, arrival_count, met; // met: arrivals in memory of their own
};

static unsigned header_bytes(const struct rs *rs)
{
    return rs->domain == AF_INET6 ? HEADER_V6 : HEADER_V4;
}

// --- life -----------------------------------------------------------------------------------------------------------

int rs_datagrams_make(struct rs *rs)
{
    rs->datagrams = calloc(1, sizeof *rs->datagrams);
    if (rs->datagrams == NULL) {
        return -ENOMEM;
    }
    rs->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return rs->fd < 0 ? -errno : rs->fd >= RS_SOCKETS_MAX ? -EMFILE : 0;
}

void rs_datagrams_end(struct rs *rs)
{
    struct rs_datagrams *all = rs->datagrams;
    if (all == NULL) {
        return;
    }
    if (rs->id != NULL) {
        cm_meeting_unbind(cm_id_of(rs->id));
    }
    if (rs->fd >= 0) {
        (void)close(rs->fd);
    }
    for (unsigned i = 0; i < all->peer_count; i++) {
        if (all->peers[i].ah != NULL) {
            (void)ibv_destroy_ah(all->peers[i].ah);
        }
    }
    for (unsigned i = 0; i < all->arrival_count; i++) {
        free(all->arrivals[(all->arrival_first + i) % (unsigned)(rs->rq_size + MET_MAX)].own);
    }
    free(all->send_slots);
    free(all->free_slots);
    free(all->arrivals);
    free(all);
    rs->datagrams = NULL;
}

static int receive_post(const struct rs *rs, unsigned slot)
{
    const struct rs_datagrams *all = rs->datagrams;
    // After the slots there is memory for the global routing headers, which are never read.
    struct ibv_sge pieces[2] = {{.addr = (uintptr_t)(all->receive_slots + (size_t)rs->rq_size * SLOT_BYTES),
                                 .length = GRH_BYTES,
                                 .lkey = rs->mr->lkey},
                                {.addr = (uintptr_t)(all->receive_slots + (size_t)slot * SLOT_BYTES),
                                 .length = SLOT_BYTES,
                                 .lkey = rs->mr->lkey}};
    struct ibv_recv_wr wr = {.wr_id = ID_RECEIVE | slot, .sg_list = pieces, .num_sge = 2}, *bad;
    return -ibv_post_recv(rs->id->qp, &wr, &bad);
}

static int slots_make(struct rs *rs)
{
    struct rs_datagrams *all = rs->datagrams;
    size_t sends = (size_t)rs->sq_size * SLOT_BYTES, receives = (size_t)rs->rq_size * SLOT_BYTES;
    size_t bytes = (sends + receives + GRH_BYTES + 4095) / 4096 * 4096;
    all->send_slots = aligned_alloc(4096, bytes);
    all->free_slots = calloc((size_t)rs->sq_size, sizeof *all->free_slots);
    all->arrivals = calloc((size_t)rs->rq_size + MET_MAX, sizeof *all->arrivals);
    if (all->send_slots == NULL || all->free_slots == NULL || all->arrivals == NULL) {
        return -ENOMEM;
    }
    memset(all->send_slots, 0, bytes);
    all->receive_slots = all->send_slots + sends;
    for (unsigned i = 0; i < (unsigned)rs->sq_size; i++) {
        all->free_slots[i] = i;
    }
    rs->mr = ibv_reg_mr(rs->id->pd, all->send_slots, bytes, IBV_ACCESS_LOCAL_WRITE);
    return rs->mr != NULL ? 0 : -errno;
}

static int queue_pair_make(struct rs *rs)
{
    rs->cq_channel = ibv_create_comp_channel(rs->id->verbs);
    if (rs->cq_channel == NULL || fcntl(rs->cq_channel->fd, F_SETFL, O_NONBLOCK) != 0) {
        return -errno;
    }
    rs->cq = ibv_create_cq(rs->id->verbs, rs->sq_size + rs->rq_size, rs, rs->cq_channel, 0);
    if (rs->cq == NULL) {
        return -errno;
    }
    struct ibv_qp_init_attr init = {.send_cq = rs->cq, .recv_cq = rs->cq, .qp_type = IBV_QPT_UD, .sq_sig_all = 1};
    init.cap = (struct ibv_qp_cap){.max_send_wr = (uint32_t)rs->sq_size,
                                   .max_recv_wr = (uint32_t)rs->rq_size,
                                   .max_send_sge = 1,
                                   .max_recv_sge = 2,
                                   .max_inline_data = (uint32_t)rs->inline_bytes};
    return rdma_create_qp(rs->id, NULL, &init) == 0 ? 0 : -errno;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

int rs_datagrams_bind(struct rs *rs, const struct sockaddr *address)
{
    struct ibv_device_attr attr;
    struct sockaddr_storage own;
    uint32_t node = cm_own_node();
    if (rs->state != RS_NEW || address->sa_family != rs->domain) {
        return -EINVAL;
    }
    bool any = cm_address_where(address, &node) == CM_WHERE_ANY; // ANY is the node, as it has only one address
    cm_address_set(&own, address->sa_family, false, cm_own_node(), cm_address_port(address));
    if (rdma_bind_addr(rs->id, any ? (struct sockaddr *)&own : (struct sockaddr *)(uintptr_t)address) != 0) {
        return -errno;
    }
    rs->state = RS_FAILED; // until the set-up is complete
    if (ibv_query_device(rs->id->verbs, &attr) != 0) {
        return -ENODEV;
    }
    rs->sq_size = smaller(smaller(rs->sq_size, attr.max_qp_wr), rs->send_bytes / SLOT_BYTES);
    rs->rq_size = smaller(smaller(rs->rq_size, attr.max_qp_wr), rs->receive_bytes / SLOT_BYTES);
    int status = cm_meeting_bind(cm_id_of(rs->id), rs->fd);
    status = status != 0 ? status : queue_pair_make(rs);
    status = status != 0 ? status : slots_make(rs);
    for (unsigned i = 0; status == 0 && i < (unsigned)rs->rq_size; i++) {
        status = receive_post(rs, i);
    }
    if (status == 0) {
        rs->requests_free = (unsigned)rs->sq_size;
        rs->state = RS_CONNECTED;
    }
    return status;
}

static int bind_any(struct rs *rs)
{
    const struct sockaddr_storage any = {.ss_family = (sa_family_t)rs->domain};
    return rs->state == RS_NEW         ? rs_datagrams_bind(rs, (const struct sockaddr *)&any)
           : rs->state == RS_CONNECTED ? 0
                                       : -EINVAL;
}

// --- peers ----------------------------------------------------------------------------------------------------------

static struct peer *peer_find(struct rs *rs, uint32_t node, uint16_t port)
{
    struct rs_datagrams *all = rs->datagrams;
    for (unsigned i = 0; i < all->peer_count; i++) {
        if (all->peers[i].node == node && all->peers[i].port == port) {
            return &all->peers[i];
        }
    }
    struct peer *peer = &all->peers[all->peer_count < PEERS_MAX ? all->peer_count++ : all->peer_made++ % PEERS_MAX];
    if (peer == all->connected) { // the connected peer is never replaced
        peer = &all->peers[all->peer_made++ % PEERS_MAX];
    }
    if (peer->ah != NULL) {
        (void)ibv_destroy_ah(peer->ah);
    }
    *peer = (struct peer){.node = node, .port = port};
    return peer;
}

static int peer_of(struct rs *rs, const struct sockaddr *address, struct peer **peer_out)
{
    uint32_t node;
    enum cm_where where = cm_address_where(address, &node);
    if (where != CM_WHERE_NODE && where != CM_WHERE_ANY) {
        return where == CM_WHERE_BAD ? -EAFNOSUPPORT : -ENETUNREACH;
    }
    *peer_out = peer_find(rs, where == CM_WHERE_ANY ? cm_own_node() : node, cm_address_port(address));
    return 0;
}

int rs_datagrams_connect(struct rs *rs, const struct sockaddr *address)
{
    int status = bind_any(rs);
    rs->datagrams->refused = false;
    return status != 0 ? status : peer_of(rs, address, &rs->datagrams->connected);
}

int rs_datagrams_peer(const struct rs *rs, struct sockaddr_storage *address_out)
{
    const struct peer *peer = rs->datagrams->connected;
    if (peer == NULL) {
        return -ENOTCONN;
    }
    cm_address_set(address_out, rs->domain, false, peer->node, peer->port);
    return 0;
}

// --- first contact --------------------------------------------------------------------------------------------------

static int meeting_send(struct rs *rs, const struct peer *peer, enum meeting_kind kind, const void *data, size_t bytes)
{
    struct cm_id *id = cm_id_of(rs->id);
    struct meeting meeting;
    memset(&meeting, 0, offsetof(struct meeting, data));
    meeting.kind = (uint8_t)kind;
    meeting.port = id->port;
    meeting.lid = id->device->port.lid;
    meeting.bytes = (uint16_t)bytes;
    meeting.node = cm_own_node();
    meeting.qp_num = rs->id->qp->qp_num;
    if (bytes != 0) {
        memcpy(meeting.data, data, bytes);
    }
    int status = cm_meeting_send(id, rs->fd, peer->node, peer->port, &meeting, offsetof(struct meeting, data) + bytes);
    rs->datagrams->refused |= peer == rs->datagrams->connected && (status == -ECONNREFUSED || status == -ENOENT);
    return status == -ENODEV ? status : 0; // other errors: the datagram is lost, as datagrams may be
}

static void peer_learn(struct rs *rs, struct peer *peer, const struct meeting *meeting)
{
    struct ibv_ah_attr attr = {.dlid = meeting->lid, .port_num = CM_PORT};
    if (peer->ah != NULL) {
        (void)ibv_destroy_ah(peer->ah);
    }
    peer->ah = ibv_create_ah(rs->id->pd, &attr);
    peer->qp_num = meeting->qp_num;
}

static struct arrival *arrival_put(struct rs *rs)
{
    struct rs_datagrams *all = rs->datagrams;
    unsigned room = (unsigned)(rs->rq_size + MET_MAX);
    return &all->arrivals[(all->arrival_first + all->arrival_count++) % room];
}

static void met_put(struct rs *rs, const struct meeting *meeting)
{
    struct rs_datagrams *all = rs->datagrams;
    uint8_t *own = all->met < MET_MAX ? malloc(meeting->bytes != 0 ? meeting->bytes : 1) : NULL;
    if (own != NULL) { // otherwise the datagram is lost
        memcpy(own, meeting->data, meeting->bytes);
        all->met++;
        *arrival_put(rs) =
            (struct arrival){.node = meeting->node, .port = meeting->port, .bytes = meeting->bytes, .own = own};
    }
}

void rs_datagrams_met(struct rs *rs)
{
    struct meeting meeting;
    ssize_t got;
    while (rs->state == RS_CONNECTED && (got = recv(rs->fd, &meeting, sizeof meeting, MSG_DONTWAIT)) >= 0) {
        struct sockaddr_storage unused;
        bool whole = got >= (ssize_t)offsetof(struct meeting, data) &&
                     got == (ssize_t)(offsetof(struct meeting, data) + meeting.bytes);
        if (!whole || (meeting.kind != MEETING_DATA && meeting.kind != MEETING_ANSWER)) {
            continue;
        }
        cm_address_set(&unused, AF_INET, false, meeting.node, meeting.port);
        struct peer *peer;
        if (peer_of(rs, (struct sockaddr *)&unused, &peer) != 0) {
            continue;
        }
        peer_learn(rs, peer, &meeting);
        if (meeting.kind == MEETING_DATA) {
            met_put(rs, &meeting);
            (void)meeting_send(rs, peer, MEETING_ANSWER, NULL, 0);
        }
    }
}

// --- sending --------------------------------------------------------------------------------------------------------

bool rs_datagrams_can_send(const struct rs *rs)
{
    return rs->state == RS_NEW || rs->requests_free > 0;
}

static void header_put(const struct rs *rs, uint8_t *to)
{
    const struct sockaddr *own = rdma_get_local_addr(rs->id);
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)own;
    to[0] = rs->domain == AF_INET6 ? 6 : 4;
    to[1] = (uint8_t)header_bytes(rs);
    memcpy(to + 2, &v4->sin_port, sizeof v4->sin_port); // at the same offset in both families
    if (rs->domain == AF_INET6) {
        memset(to + 4, 0, 4);
        memcpy(to + 8, &((const struct sockaddr_in6 *)own)->sin6_addr, 16);
    } else {
        memcpy(to + 4, &v4->sin_addr, 4);
    }
}

static ssize_t datagram_post(struct rs *rs, const struct peer *peer, const void *data, size_t bytes)
{
    struct rs_datagrams *all = rs->datagrams;
    unsigned header = header_bytes(rs), slot = all->free_slots[--rs->requests_free];
    uint8_t *memory = all->send_slots + (size_t)slot * SLOT_BYTES;
    header_put(rs, memory);
    rs_copy(memory + header, data, bytes);
    struct ibv_sge piece = {.addr = (uintptr_t)memory, .length = (uint32_t)(header + bytes), .lkey = rs->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = slot, .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    wr.send_flags = piece.length <= (uint32_t)rs->inline_bytes ? IBV_SEND_INLINE : 0;
    wr.wr.ud.ah = peer->ah;
    wr.wr.ud.remote_qpn = peer->qp_num;
    wr.wr.ud.remote_qkey = RDMA_UDP_QKEY;
    int status = -ibv_post_send(rs->id->qp, &wr, &bad);
    rs->requests_free += status != 0;
    return status != 0 ? status : (ssize_t)bytes;
}

static unsigned most_bytes(const struct rs *rs)
{
    unsigned mtu = 128u << cm_id_of(rs->id)->device->port.active_mtu;
    return (mtu < SLOT_BYTES ? mtu : SLOT_BYTES) - header_bytes(rs);
}

ssize_t rs_datagram_send(struct rs *rs, const void *data, size_t bytes, int flags, const struct sockaddr *to)
{
    struct rs_datagrams *all = rs->datagrams;
    struct peer *peer = all->connected;
    bool at_once = ((rs->flags & O_NONBLOCK) | (flags & MSG_DONTWAIT)) != 0;
    int status = bind_any(rs);
    if (status == 0 && to != NULL) {
        status = peer_of(rs, to, &peer);
    }
    if (status != 0 || peer == NULL || bytes > most_bytes(rs)) {
        return status != 0 ? status : peer == NULL ? -EDESTADDRREQ : -EMSGSIZE;
    }
    if (peer->ah == NULL) {
        const struct peer asked = *peer;
        rs_datagrams_met(rs);
        peer = peer_find(rs, asked.node, asked.port);
    }
    if (all->refused && peer == all->connected) {
        all->refused = false;
        return -ECONNREFUSED;
    }
    const struct peer wanted = *peer;
    if (wanted.ah != NULL && rs->requests_free == 0) {
        status = rs_wait(rs, rs_can_send, at_once);
    }
    peer = peer_find(rs, wanted.node, wanted.port); // a new peer may have replaced it
    if (status == 0 && peer->ah == NULL) {
        status = meeting_send(rs, peer, MEETING_DATA, data, bytes);
        return status != 0 ? status : (ssize_t)bytes;
    }
    return status != 0 ? status : datagram_post(rs, peer, data, bytes);
}

// --- receiving ------------------------------------------------------------------------------------------------------

bool rs_datagrams_can_receive(const struct rs *rs)
{
    return rs->datagrams->arrival_count > 0 || rs->datagrams->refused;
}

// The sender may use another address family.
static bool header_take(const uint8_t *from, uint32_t bytes, struct arrival *arrival_out)
{
    struct sockaddr_storage address = {0};
    bool v6 = bytes >= HEADER_V6 && from[0] == 6 && from[1] == HEADER_V6;
    if (!v6 && (bytes < HEADER_V4 || from[0] != 4 || from[1] != HEADER_V4)) {
        return false;
    }
    address.ss_family = v6 ? AF_INET6 : AF_INET;
    memcpy(&((struct sockaddr_in *)&address)->sin_port, from + 2, 2);
    if (v6) {
        memcpy(&((struct sockaddr_in6 *)&address)->sin6_addr, from + 8, 16);
    } else {
        memcpy(&((struct sockaddr_in *)&address)->sin_addr, from + 4, 4);
    }
    arrival_out->port = cm_address_port((struct sockaddr *)&address);
    arrival_out->header = from[1];
    arrival_out->bytes = (uint16_t)(bytes - from[1]);
    return cm_address_where((struct sockaddr *)&address, &arrival_out->node) == CM_WHERE_NODE;
}

void rs_datagrams_completed(struct rs *rs, const struct ibv_wc *wc)
{
    struct rs_datagrams *all = rs->datagrams;
    unsigned slot = (unsigned)(wc->wr_id & ~ID_RECEIVE);
    if ((wc->wr_id & ID_RECEIVE) == 0) {
        all->free_slots[rs->requests_free++] = slot;
        return;
    }
    struct arrival arrival = {.slot = slot};
    const uint8_t *memory = all->receive_slots + (size_t)slot * SLOT_BYTES;
    if (wc->status == IBV_WC_SUCCESS && wc->byte_len >= GRH_BYTES &&
        header_take(memory, wc->byte_len - GRH_BYTES, &arrival)) {
        *arrival_put(rs) = arrival;
    } else if (wc->status == IBV_WC_SUCCESS) {
        (void)receive_post(rs, slot);
    }
}

ssize_t rs_datagram_receive(struct rs *rs, void *buffer, size_t bytes, int flags, struct sockaddr *from,
                            socklen_t *from_bytes)
{
    struct rs_datagrams *all = rs->datagrams;
    bool at_once = ((rs->flags & O_NONBLOCK) | (flags & MSG_DONTWAIT)) != 0;
    int status = rs->state != RS_CONNECTED ? -EINVAL
                 : all->arrival_count > 0  ? 0
                                           : rs_wait(rs, rs_can_receive, at_once);
    if (status == 0 && all->arrival_count == 0) {
        all->refused = false;
        status = -ECONNREFUSED;
    }
    if (status != 0) {
        return status;
    }
    const struct arrival arrival = all->arrivals[all->arrival_first];
    const uint8_t *memory = all->receive_slots + (size_t)arrival.slot * SLOT_BYTES + arrival.header;
    size_t taken = bytes < arrival.bytes ? bytes : arrival.bytes;
    rs_copy(buffer, arrival.own != NULL ? arrival.own : memory, taken);
    if (from != NULL && from_bytes != NULL) {
        struct sockaddr_storage address;
        socklen_t have = rs->domain == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
        cm_address_set(&address, rs->domain, false, arrival.node, arrival.port);
        memcpy(from, &address, *from_bytes < have ? *from_bytes : have);
        *from_bytes = have;
    }
    if ((flags & MSG_PEEK) == 0) {
        all->arrival_first = (all->arrival_first + 1) % (unsigned)(rs->rq_size + MET_MAX);
        all->arrival_count--;
        all->met -= arrival.own != NULL;
        free(arrival.own);
        status = arrival.own != NULL ? 0 : receive_post(rs, arrival.slot);
    }
    return status != 0 ? status : (ssize_t)((flags & MSG_TRUNC) != 0 ? arrival.bytes : taken);
}
