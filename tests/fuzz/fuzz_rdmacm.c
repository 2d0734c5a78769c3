// What a hostile peer can send to programs that use librdmacm: messages of the connection manager to listeners and
// connections, and the completions, messages and first contacts of rsockets.
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "kernel_double.h"
#include "verbs-shim/rdmacm/internal.h"
#include "verbs-shim/rdmacm/rsocket.h"
#include "verbs_double.h"

enum { OPS_MAX = 200, PEERS = 4, IDS = 8, STREAMS = 4, PORT_IDS = 7471, PORT_STREAMS = 7472, PORT_DATAGRAMS = 7473 };

static struct side {
    struct fuzz_input input;
    int peers[PEERS]; // sockets of the hostile side; -1: none
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener, *ids[IDS];
    int listening_stream, streams[STREAMS], datagrams;
} side;

// --- the hostile side ------------------------------------------------------------------------------------------------

static void peer_connect(unsigned which)
{
    struct cm_id id = {.socket = -1, .claim = -1};
    id.base.ps = RDMA_PS_TCP;
    id.base.channel = side.channel;
    if (side.peers[which] < 0 &&
        cm_socket_connect(&id, 0, fuzz_below(&side.input, 2) == 0 ? PORT_IDS : PORT_STREAMS) == 0) {
        side.peers[which] = id.socket;
    }
}

static void peer_close(unsigned which)
{
    if (side.peers[which] >= 0) {
        close(side.peers[which]);
        side.peers[which] = -1;
    }
}

static void peer_send(unsigned which)
{
    struct cm_message message;
    memset(&message, 0, sizeof message);
    message.kind = (uint8_t)fuzz_below(&side.input, CM_SIDR_REP + 2);
    message.reason = (uint8_t)fuzz_take(&side.input, 1);
    message.mtu = IBV_MTU_1024;
    message.node = fuzz_below(&side.input, 8);
    message.port = (uint16_t)fuzz_take(&side.input, 2);
    memcpy(message.device, "ibsim0", sizeof "ibsim0");
    message.private_bytes = (uint8_t)fuzz_take(&side.input, 1);
    struct rs_hello hello = {.receives = fuzz_below(&side.input, 300),
                             .iomaps = fuzz_below(&side.input, 200),
                             .half = {.bytes = (uint32_t)fuzz_take(&side.input, 3)}};
    memcpy(message.private_data, &hello, sizeof hello);
    size_t bytes = sizeof message;
    if (fuzz_below(&side.input, 4) == 0) {
        size_t at = fuzz_take(&side.input, 2) % sizeof message;
        fuzz_fill(&side.input, (uint8_t *)&message + at, sizeof message - at < 16 ? sizeof message - at : 16);
        bytes = fuzz_below(&side.input, 4) == 0 ? at : bytes;
    }
    (void)!send(side.peers[which], &message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void peer_meet(void)
{
    struct cm_id id = {.socket = -1, .claim = -1, .port = (uint16_t)(PORT_DATAGRAMS + 1)};
    uint8_t meeting[RS_DATAGRAM_BYTES];
    size_t bytes = fuzz_below(&side.input, 64);
    id.base.ps = RDMA_PS_UDP;
    fuzz_fill(&side.input, meeting, bytes);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)cm_meeting_send(&id, fd, 0, PORT_DATAGRAMS, meeting, bytes);
    close(fd);
}

static void peer_act(void)
{
    unsigned which = fuzz_below(&side.input, PEERS);
    switch (fuzz_below(&side.input, 4)) {
    case 0:
        peer_connect(which);
        return;
    case 1:
        peer_close(which);
        return;
    case 2:
        peer_meet();
        return;
    }
    peer_send(which);
}

// --- the program -----------------------------------------------------------------------------------------------------

static void id_new(struct rdma_cm_id *id)
{
    for (unsigned i = 0; i < IDS; i++) {
        if (side.ids[i] == NULL) {
            side.ids[i] = id;
            return;
        }
    }
    (void)rdma_destroy_id(id);
}

static struct rdma_cm_id *id_choose(void)
{
    return side.ids[fuzz_below(&side.input, IDS)];
}

static void event_take(void)
{
    struct rdma_cm_event *event;
    if (rdma_get_cm_event(side.channel, &event) != 0) {
        return;
    }
    struct rdma_cm_id *incoming = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;
    (void)rdma_ack_cm_event(event);
    if (incoming != NULL) {
        id_new(incoming);
    }
}

static void id_connect(void)
{
    struct rdma_cm_id *id;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)(fuzz_below(&side.input, 2) + PORT_IDS))};
    to.sin_addr.s_addr = htonl(DOUBLE_ADDRESS_BASE);
    if (rdma_create_id(side.channel, &id, NULL, RDMA_PS_TCP) == 0) {
        (void)rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000);
        id_new(id);
    }
}

static void id_act(void)
{
    struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
    struct rdma_cm_id *id = id_choose();
    uint32_t what = fuzz_below(&side.input, 8);
    if (what == 0) {
        id_connect();
    } else if (id == NULL || what == 1) {
        event_take();
    } else if (what == 2) {
        (void)rdma_accept(id, &param);
    } else if (what == 3) {
        (void)rdma_reject(id, NULL, 0);
    } else if (what == 4) {
        (void)rdma_disconnect(id);
    } else if (what == 5) {
        (void)(rdma_resolve_route(id, 1000) != 0 && rdma_connect(id, &param) != 0);
    } else if (what == 6 && id->qp == NULL) {
        struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
        (void)rdma_create_qp(id, NULL, &init);
    } else if (what == 7) {
        for (unsigned i = 0; i < IDS; i++) {
            side.ids[i] = side.ids[i] == id ? NULL : side.ids[i];
        }
        rdma_destroy_qp(id);
        (void)rdma_destroy_id(id);
    }
}

static void stream_act(void)
{
    uint8_t data[4096] = {0};
    unsigned which = fuzz_below(&side.input, STREAMS);
    size_t bytes = 1 + fuzz_below(&side.input, sizeof data);
    switch (fuzz_below(&side.input, 6)) {
    case 0:
        if (side.streams[which] < 0) {
            side.streams[which] = raccept(side.listening_stream, NULL, NULL);
            (void)(side.streams[which] >= 0 && rfcntl(side.streams[which], F_SETFL, O_NONBLOCK) != 0);
        }
        return;
    case 1:
        (void)rrecv(side.streams[which], data, bytes, MSG_DONTWAIT | (fuzz_below(&side.input, 2) != 0 ? MSG_PEEK : 0));
        return;
    case 2:
        (void)rsend(side.streams[which], data, bytes, MSG_DONTWAIT);
        return;
    case 3:
        (void)rrecvfrom(side.datagrams, data, bytes, MSG_DONTWAIT, NULL, NULL);
        return;
    case 4: {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT_DATAGRAMS + 1)};
        to.sin_addr.s_addr = htonl(DOUBLE_ADDRESS_BASE + fuzz_below(&side.input, DOUBLE_NODES + 1));
        (void)rsendto(side.datagrams, data, bytes % 1500, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof to);
        return;
    }
    }
    struct pollfd polled = {.fd = side.streams[which], .events = POLLIN | POLLOUT};
    (void)(side.streams[which] >= 0 && rpoll(&polled, 1, 0) < 0);
}

// --- a case ----------------------------------------------------------------------------------------------------------

static int rsocket_bound(int type, uint16_t port)
{
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = rsocket(AF_INET, type, 0);
    FUZZ_HOLDS(fd >= 0 && rbind(fd, (const struct sockaddr *)&any, sizeof any) == 0, "no rsocket");
    FUZZ_HOLDS(rfcntl(fd, F_SETFL, O_NONBLOCK) == 0, "no flags");
    return fd;
}

static void side_begin(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT_IDS)};
    memset(side.peers, 0xff, sizeof side.peers);
    memset(side.streams, 0xff, sizeof side.streams);
    memset(side.ids, 0, sizeof side.ids);
    side.channel = rdma_create_event_channel();
    FUZZ_HOLDS(side.channel != NULL && fcntl(side.channel->fd, F_SETFL, O_NONBLOCK) == 0, "no channel");
    FUZZ_HOLDS(rdma_create_id(side.channel, &side.listener, NULL, RDMA_PS_TCP) == 0, "no identifier");
    FUZZ_HOLDS(rdma_bind_addr(side.listener, (struct sockaddr *)&any) == 0 && rdma_listen(side.listener, 4) == 0,
               "no listener");
    side.listening_stream = rsocket_bound(SOCK_STREAM, PORT_STREAMS);
    FUZZ_HOLDS(rlisten(side.listening_stream, 4) == 0, "no listening rsocket");
    side.datagrams = rsocket_bound(SOCK_DGRAM, PORT_DATAGRAMS);
}

static void side_end(void)
{
    verbs_double_flush();
    for (unsigned i = 0; i < PEERS; i++) {
        peer_close(i);
    }
    for (unsigned i = 0; i < IDS; i++) {
        if (side.ids[i] != NULL) {
            rdma_destroy_qp(side.ids[i]);
            (void)rdma_destroy_id(side.ids[i]);
        }
    }
    for (unsigned i = 0; i < STREAMS; i++) {
        (void)(side.streams[i] >= 0 && rclose(side.streams[i]) != 0);
    }
    (void)rclose(side.listening_stream);
    (void)rclose(side.datagrams);
    (void)rdma_destroy_id(side.listener);
    rdma_destroy_event_channel(side.channel);
    FUZZ_HOLDS(cm_ids() == NULL, "an identifier is left");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)setenv("TCASIM_ATTACH", "/run/attach", 1); // no such file: the names of sockets are the double's
    kernel_double_begin();
    verbs_double_begin();
    side.input = (struct fuzz_input){data, size};
    side_begin();
    for (unsigned i = 0; i < OPS_MAX && side.input.size > 0; i++) {
        switch (fuzz_below(&side.input, 4)) {
        case 0:
            peer_act();
            break;
        case 1:
            id_act();
            break;
        case 2:
            stream_act();
            break;
        case 3:
            verbs_double_complete(&side.input);
            break;
        }
    }
    side_end();
    return 0;
}
