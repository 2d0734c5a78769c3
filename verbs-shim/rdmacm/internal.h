// librdmacm.so.1 for attached programs: the connection manager of <rdma/rdma_cma.h> on the devices of libibverbs.so.1.
// Private to the folder.
//
// Modelled: what a program sees of the kernel's rdma_cm and ib_cm: identifiers and their states, events, the messages
// of a connection (InfiniBand Architecture 1, chapter 12: REQ, REP, RTU, REJ, DREQ, DREP, SIDR_REQ, SIDR_REP), state
// transitions of queue pairs, and timeouts. Not modelled: the path of these messages through the fabric. They go from
// process to process over sockets (message.c), in no simulated time, also if no cable connects the nodes
// (docs/decisions/0015-connection-manager.md). Also not modelled: MRA, LAP, timewait events, XRC, AF_IB addresses.
//
// A program's struct rdma_cm_id is the first member of a struct cm_id. One lock of the process protects everything;
// functions named cm_ are called with the lock, those of the public header acquire it. Functions return 0 or a negative
// errno, those of the public header what their manual specifies. Times are CLOCK_MONOTONIC in ns.
#pragma once

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cm_id;
struct cm_channel;
struct cm_group;

#define CM_PRIVATE_BYTES 256
#define CM_NAME_BYTES    64
#define CM_PORT          1 // devices have one port
// 4.096 us * 2^18: the subnet manager's default for paths (opensm's subnet_timeout, IBA 15.2.5.16).
#define CM_PACKET_LIFE 18

// --- messages -------------------------------------------------------------------------------------------------------

enum cm_kind { CM_REQ = 1, CM_REP, CM_RTU, CM_REJ, CM_DREQ, CM_DREP, CM_SIDR_REQ, CM_SIDR_REP };

// Reasons of a REJ (IBA 12.6.7.2), states of a SIDR_REP (IBA 12.11.2.2).
enum { CM_REJ_NO_SERVICE = 8, CM_REJ_CONSUMER = 28 };
enum { CM_SIDR_VALID = 0, CM_SIDR_NO_SERVICE = 1, CM_SIDR_REJECTED = 2 };

struct cm_message {
    uint8_t kind;
    uint8_t reason; // REJ and SIDR_REP only
    uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count, flow_control, srq;
    uint32_t qp_num, psn, qkey;
    uint32_t node;      // node of the sender
    uint16_t lid, port; // the sender's; port in host byte order
    uint8_t mtu;        // enum ibv_mtu
    char device[CM_NAME_BYTES];
    union ibv_gid gid;
    struct ibv_ece ece;
    uint8_t private_bytes;
    uint8_t private_data[CM_PRIVATE_BYTES];
};

// --- events ---------------------------------------------------------------------------------------------------------

struct cm_event {
    struct rdma_cm_event base;
    struct cm_event *next;
    struct cm_id *owner; // its destruction waits until the program has acknowledged the event
    uint8_t private_data[CM_PRIVATE_BYTES];
};

struct cm_channel {
    struct rdma_event_channel base; // fd: an epoll descriptor for the two below and the sockets of the identifiers
    int signal;                     // counter: number of events in the list
    int timer;                      // -1: never needed
    struct cm_event *first, **end;
    unsigned waiters; // threads in rdma_get_cm_event
    bool closed;      // destroyed, but some threads still wait
};

// --- identifiers ----------------------------------------------------------------------------------------------------

enum cm_state {
    CM_IDLE,
    CM_BOUND,
    CM_ADDRESS_SOUGHT,
    CM_ADDRESS_FOUND,
    CM_ROUTE_SOUGHT,
    CM_ROUTED,
    CM_LISTENING,
    CM_INCOMING,   // a peer has connected and sent no request yet; the program does not know it
    CM_CONNECTING, // REQ or SIDR_REQ sent
    CM_REQUESTED,  // REQ or SIDR_REQ received
    CM_ACCEPTED,   // REP sent
    CM_ANSWERED,   // REP received; the program has a queue pair of its own and must establish
    CM_ESTABLISHED,
    CM_PARTING, // DREQ sent
    CM_PARTED,
    CM_ENDED // rejected, timed out, or answered by a SIDR_REP
};

struct cm_device {
    struct ibv_context *verbs; // NULL: not opened
    struct ibv_pd *pd;         // for programs that pass none; NULL: not needed yet
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    union ibv_gid gid;
};

struct cm_id {
    struct rdma_cm_id base;
    struct cm_id *next;
    uint64_t number; // number of its socket in the channel's epoll
    enum cm_state state;
    struct cm_device *device; // NULL: not bound to a device
    struct cm_id *listener;   // CM_INCOMING
    bool sync;                // calls wait for their event; the library owns the channel
    int socket;               // -1: none
    int claim;                // descriptor of its port's lock; -1: none
    uint16_t port;            // host byte order
    uint64_t deadline_ns;     // 0: none
    unsigned attempts;        // number of REQs that found the listener's queue full
    uint32_t psn;
    struct cm_message own, peer; // the last REQ or REP of each side
    bool peer_known;
    uint8_t responder_resources, initiator_depth; // values for the queue pair
    uint8_t ack_timeout;                          // RDMA_OPTION_ID_ACK_TIMEOUT; 0: derived from the path
    struct ibv_ece ece;
    struct ibv_qp_init_attr *qp_init; // of rdma_create_ep, for a listener; NULL: none
    bool own_srq;                     // created by rdma_create_srq
    uint32_t events_taken, events_acknowledged;
    struct ibv_sa_path_rec path_rec;
    struct cm_group *groups; // joined groups
};

static inline struct cm_id *cm_id_of(struct rdma_cm_id *id)
{
    return (struct cm_id *)id;
}
static inline bool cm_is_datagram(const struct cm_id *id)
{
    return id->base.qp_type == IBV_QPT_UD;
}

// --- the process (library.c) ----------------------------------------------------------------------------------------

void cm_enter(void);
void cm_leave(int *unused);
// The caller holds the lock until the end of the block.
#define CM_ENTER() int cm_entered __attribute__((cleanup(cm_leave), unused)) = (cm_enter(), 0)
void cm_wait_acknowledged(const struct cm_id *id); // releases the lock while it waits
void cm_acknowledged(void);

int cm_errno(int status); // 0, or -1 with errno set to -status

uint64_t cm_now_ns(void);
void cm_event_pay(void); // pays the wake-up of a thread
// NULL and errno: there is none. name NULL: the device that owns the node's address.
struct cm_device *cm_device_open(const char *name);
struct cm_id *cm_ids(void); // head of the list
struct cm_id *cm_id_find(uint64_t number);
struct cm_id *cm_id_new(struct cm_channel *channel, void *context, enum rdma_port_space ps, enum ibv_qp_type type);
void cm_id_free(struct cm_id *id); // also closes its socket

// --- addresses (address.c) ------------------------------------------------------------------------------------------

enum cm_where { CM_WHERE_ANY, CM_WHERE_NODE, CM_WHERE_NOBODY, CM_WHERE_BAD };
// Classifies an address. *node_out is set for CM_WHERE_NODE.
enum cm_where cm_address_where(const struct sockaddr *address, uint32_t *node_out);
uint16_t cm_address_port(const struct sockaddr *address); // host byte order
// Writes an address of the family: the node's, or any; IPv4 mapped to IPv6 if the family is IPv6.
void cm_address_set(struct sockaddr_storage *address_out, int family, bool any, uint32_t node, uint16_t port);
uint32_t cm_own_node(void);
int cm_port_take(struct cm_id *id, uint16_t port); // 0: any free port. -EADDRINUSE
void cm_port_give(struct cm_id *id);               // also closes its socket
int cm_socket_listen(struct cm_id *id, int backlog);
// -EAGAIN: the listener's queue is full; -ECONNREFUSED, -ENOENT: there is no listener.
int cm_socket_connect(struct cm_id *id, uint32_t node, uint16_t port);
void cm_socket_close(struct cm_id *id);
// Datagrams between the owners of ports of one space, over separate sockets. -EAGAIN: the receiver's queue is full;
// -ECONNREFUSED, -ENOENT: there is no receiver.
int cm_meeting_bind(const struct cm_id *id, int fd);
void cm_meeting_unbind(const struct cm_id *id);
int cm_meeting_send(const struct cm_id *id, int fd, uint32_t node, uint16_t port, const void *data, size_t bytes);

// --- binding (resolve.c) --------------------------------------------------------------------------------------------

void cm_bind_device(struct cm_id *id, struct cm_device *device);
int cm_bind_any(struct cm_id *id);
void cm_route_set(struct cm_id *id, uint32_t node); // sets the path to the node
uint64_t cm_answer_ns(void);                        // time of a request to another node of the fabric
void cm_resolved(struct cm_id *id);                 // a pending address or route resolution is complete

// --- multicast (multicast.c) ----------------------------------------------------------------------------------------

bool cm_is_group(const struct sockaddr *address);
void cm_groups_leave(struct cm_id *id); // leaves all groups

// --- channels (channel.c) -------------------------------------------------------------------------------------------

struct cm_channel *cm_channel_new(void); // NULL and errno
void cm_channel_free(struct cm_channel *channel);
static inline struct cm_channel *cm_channel_of(const struct cm_id *id)
{
    return (struct cm_channel *)id->base.channel;
}
int cm_channel_watch(struct cm_id *id);    // polls its socket
void cm_channel_unwatch(struct cm_id *id); // before the socket is closed
void cm_channel_rearm(struct cm_channel *channel);
void cm_deadline_set(struct cm_id *id, uint64_t delay_ns); // 0: none
// NULL: no memory. The caller fills in the other fields.
struct cm_event *cm_event_put(struct cm_id *id, enum rdma_cm_event_type type, int status);
void cm_events_drop(struct cm_id *id); // events that were not taken yet
int cm_complete(struct cm_id *id);     // waits for the event of a synchronous identifier; called without the lock

// --- messages (message.c, receive.c) --------------------------------------------------------------------------------

void cm_message_begin(struct cm_id *id, struct cm_message *message, enum cm_kind kind);
int cm_message_send(struct cm_id *id, const struct cm_message *message);
void cm_request_try(struct cm_id *id);                                // sends id->own to the destination, now or later
void cm_answer_await(struct cm_id *id);                               // sets the timeout for the answer
unsigned cm_private_room(enum rdma_port_space ps, enum cm_kind kind); // bytes for the program in the message
void cm_socket_ready(struct cm_id *id);
void cm_deadline_passed(struct cm_id *id);

// --- queue pairs (qp.c) ---------------------------------------------------------------------------------------------

int cm_qp_attr(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask);
int cm_qp_connect(struct cm_id *id, uint8_t responder_resources, uint8_t initiator_depth);
int cm_qp_error(struct cm_id *id);
