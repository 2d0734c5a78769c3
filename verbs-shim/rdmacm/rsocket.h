// rsockets (rsocket(7)): streams over a reliable connection. Private to the folder.
//
// Modelled: the mechanism of rdma-core, whose performance follows from it. A sender writes into the receiver's buffer
// by RDMA writes with immediate data, which hold the number of bytes. The receiver grants its buffer in two halves: it
// writes their addresses into a table of the sender, and the number of further messages that the sender may send. Sent
// data is first copied into a buffer unless it goes inline; received data is copied out. A wait polls for 10 us before
// it sleeps. The wire format is this library's own: both ends of a run use it. Not modelled: fork, keep-alive,
// out-of-band data.
//
// Datagrams (rdatagram.c) use a UD queue pair.
//
// A socket's number is the descriptor of its event channel, or of the kernel socket of a datagram socket. Each socket
// has one lock, which is free while a thread waits.
#pragma once

#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdint.h>

enum { RS_SOCKETS_MAX = 4096, RS_DATAGRAM_BYTES = 2048 }; // RS_DATAGRAM_BYTES: with the header
enum { RS_HALVES = 2, RS_IOMAPS_MAX = 128, RS_CONTROLS = 4, RS_EXTRA_RECEIVES = 8 };

enum rs_state { RS_NEW, RS_BOUND, RS_LISTENING, RS_CONNECTING, RS_CONNECTED, RS_FAILED };

// Memory of the peer.
struct rs_window {
    uint64_t address;
    uint32_t key, bytes;
};
struct rs_iomap {
    uint64_t offset;
    struct rs_window window; // bytes 0: unused
};

// Written by the peer: where it receives data, and what it has mapped. After it comes what this side writes there.
struct rs_table {
    struct rs_window halves[RS_HALVES];
    struct rs_iomap iomaps[RS_IOMAPS_MAX];
    struct rs_window own_halves[RS_HALVES];
    struct rs_iomap own_iomaps[RS_IOMAPS_MAX];
};

// The private data of request and answer.
struct rs_hello {
    uint32_t receives, iomaps;
    struct rs_window table, half; // half: the first one, granted with this message
};

struct rs_mapping { // of this side
    void *memory;
    size_t bytes;
    struct ibv_mr *mr;
    int index; // in the peer's table; -1: none
};

struct rs_datagrams;

struct rs {
    int fd;
    pthread_mutex_t lock;
    enum rs_state state;
    int domain, error;
    int flags; // O_NONBLOCK
    bool read_end, write_end;
    bool read_shut; // set by rshutdown
    int sq_size, rq_size, inline_bytes, iomap_size;
    int send_bytes, receive_bytes; // of the buffers
    int options;                   // set by rsetsockopt: bits
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
    struct ibv_comp_channel *cq_channel;
    struct ibv_cq *cq;
    // memory that is registered together: table, receive buffer, send buffer
    struct rs_table *table;
    uint8_t *receive_buffer, *send_buffer;
    struct ibv_mr *mr;
    // sending
    unsigned requests_free, controls_free;
    unsigned send_head, send_free; // bytes
    unsigned half;                 // half of the table into which the next byte goes
    uint16_t sent, may_send;       // messages
    struct rs_hello peer;
    // receiving
    uint32_t *messages; // bytes that are left in each
    unsigned message_first, message_count;
    unsigned unread_bytes;                         // of all messages
    unsigned take_offset, give_offset, give_bytes; // of the receive buffer
    uint16_t received, granted;
    unsigned peer_half; // the half of the peer's table to be written next
    struct rs_mapping mappings[RS_IOMAPS_MAX];
    struct rs_datagrams *datagrams; // NULL: a stream
};

struct rs *rs_find(int fd); // NULL and errno
struct rs *rs_enter(int fd);
void rs_leave(struct rs *rs);

// A negative errno. The lock is free while the function waits, and held while it calls `ready`.
typedef bool (*rs_ready_fn)(const struct rs *rs);
int rs_wait(struct rs *rs, rs_ready_fn ready, bool at_once);
void rs_reap(struct rs *rs); // polls completions
void rs_arm(struct rs *rs);
void rs_taken(struct rs *rs); // takes what a descriptor signalled: completion events, events of the connection
void rs_channel_ready(struct rs *rs);

int rs_transport_make(struct rs *rs); // buffers and queue pair
void rs_transport_end(struct rs *rs);
int rs_receive_post(const struct rs *rs);
void rs_hello_fill(const struct rs *rs, struct rs_hello *hello);
void rs_connected(struct rs *rs);
void rs_grant(struct rs *rs); // grants the free part of the receive buffer, if it is worth a message

bool rs_is_decided(const struct rs *rs); // it is connected, or will never be
bool rs_can_send(const struct rs *rs);
bool rs_can_receive(const struct rs *rs);
bool rs_all_sent(const struct rs *rs);
int rs_control_send(struct rs *rs, uint32_t value);
enum { RS_CONTROL_DISCONNECT, RS_CONTROL_SHUTDOWN };
// Writes data of this side to an address of the peer; immediate: NULL: none.
int rs_write(struct rs *rs, const void *data, unsigned bytes, const struct rs_window *to, const uint32_t *immediate,
             uint64_t id);
uint32_t rs_iomap_immediate(void);
// Writes as much as there is room for to memory of the peer, without a notification. Returns the bytes, or a negative
// errno.
int rs_piece_write(struct rs *rs, const void *data, size_t most, const struct rs_window *to);

void rs_copy(void *to, const void *from, size_t bytes); // a copy by the processor, which takes time

// --- datagrams (rdatagram.c) ----------------------------------------------------------------------------------------

int rs_datagrams_make(struct rs *rs); // also sets the socket's number
void rs_datagrams_end(struct rs *rs); // after rs_transport_end, because the queue pair uses its memory
int rs_datagrams_bind(struct rs *rs, const struct sockaddr *address);
int rs_datagrams_connect(struct rs *rs, const struct sockaddr *address);
int rs_datagrams_peer(const struct rs *rs, struct sockaddr_storage *address_out); // -ENOTCONN
// to NULL: the connected peer. Returns the bytes, or a negative errno.
ssize_t rs_datagram_send(struct rs *rs, const void *data, size_t bytes, int flags, const struct sockaddr *to);
ssize_t rs_datagram_receive(struct rs *rs, void *buffer, size_t bytes, int flags, struct sockaddr *from,
                            socklen_t *from_bytes);
void rs_datagrams_completed(struct rs *rs, const struct ibv_wc *wc);
void rs_datagrams_met(struct rs *rs); // handles messages on the kernel socket
bool rs_datagrams_can_send(const struct rs *rs);
bool rs_datagrams_can_receive(const struct rs *rs);
