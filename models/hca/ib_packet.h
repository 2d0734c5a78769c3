// InfiniBand packets: header fields, payload, and sizes on a wire.
//
// A packet comes from a pool and has one owner at a time; a link that takes it passes it to the receiver. Opcodes are
// those of the BTH; ib_opcodes.def has the properties of each. A GRH takes its bytes on the wire. The
// GRH of a datagram has contents; that of a connected queue pair has none, because no one reads it (one subnet). Leaves
// out: P_Keys, migration, congestion bits, the CRCs' values (a damaged packet is marked as such).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IB_PAYLOAD_MAX 4096u
#define IB_GRH_BYTES   40u
#define IB_PSN_MASK    0xffffffu
#define IB_BLOCK_BYTES 64u // unit of link credits (7.9.4)

// LIDs of groups (4.1.3), and the queue pair number of packets to a group (9.6.1.2).
#define IB_MULTICAST_LID 0xc000u
#define IB_MULTICAST_QPN 0xffffffu
static inline bool ib_is_multicast(uint16_t lid)
{
    return lid >= IB_MULTICAST_LID && lid != 0xffff;
}

enum ib_service { IB_RC = 0x00, IB_UC = 0x20, IB_UD = 0x60, IB_XRC = 0xa0, IB_SERVICE_MASK = 0xe0 };

enum ib_opcode {
#define IB_OPCODE(name, code, flags) IB_##name = (code),
#include "models/hca/ib_opcodes.def"
    IB_OPCODE_MASK = 0x1f
};

enum {
    IB_HAS_RETH = 0x001,
    IB_HAS_ATOMIC_ETH = 0x002,
    IB_HAS_AETH = 0x004,
    IB_HAS_ATOMIC_ACK = 0x008,
    IB_HAS_IMMEDIATE = 0x010,
    IB_HAS_PAYLOAD = 0x020,
    IB_IS_RESPONSE = 0x040,
    IB_IS_FIRST = 0x080, // begins a message
    IB_IS_LAST = 0x100,  // ends one
    IB_IS_SEND = 0x200,
    IB_IS_WRITE = 0x400,
};
extern const uint16_t ib_opcode_flags[IB_OPCODE_MASK + 1]; // 0: no such opcode

// AETH syndromes (table 44): kind in bits 6:5, RNR timer or NAK code below.
enum { IB_SYNDROME_ACK = 0x1f, IB_SYNDROME_RNR = 0x20, IB_SYNDROME_NAK = 0x60, IB_SYNDROME_KIND = 0x60 };
enum ib_nak { IB_NAK_SEQUENCE, IB_NAK_INVALID_REQUEST, IB_NAK_REMOTE_ACCESS, IB_NAK_REMOTE_OPERATION };

#define IB_FRAME_BYTES 4u // around each packet: delimiters and the variant CRC

struct ib_end;

typedef struct ib_packet {
    uint8_t opcode, service;
    uint8_t sl, syndrome;
    uint16_t slid, dlid;
    uint32_t dest_qpn, psn, msn;
    uint32_t source_qpn, qkey; // DETH
    uint32_t srqn;             // XRCETH
    uint64_t address;          // RETH, AtomicETH
    uint32_t rkey, dma_bytes;
    uint64_t swap_add, compare, original;
    uint32_t immediate, bytes; // bytes of payload
    bool ack_request, solicited, damaged, global;
    uint8_t fault;      // of a NAK: the reason, for messages to the user; not on the wire
    bool damage_answer; // of a request: its answer must arrive damaged (adversity.c); not on the wire
    bool in_long;       // of a message that may go by stream (stream.c); not on the wire
    // the owner's
    struct ib_packet *next;
    struct ib_end *arrived_at;
    uint64_t due_ps;
    uint32_t cause; // of its being here (sim/kernel/cause.h)
    void *qp;       // the sender, or the queue pair whose receive entry it waits for
    uint32_t generation, index, pending;
    struct ib_packet *shared; // of a copy: the packet that arrived, which counts its copies in pending; or NULL
    bool failed, ends_request;
    uint8_t grh[IB_GRH_BYTES]; // of a global datagram; before the payload, as it is received
    uint8_t data[IB_PAYLOAD_MAX];
} ib_packet_t;
_Static_assert(offsetof(ib_packet_t, data) == offsetof(ib_packet_t, grh) + IB_GRH_BYTES, "nothing between them");

typedef struct ib_pool ib_pool_t;

ib_pool_t *ib_pool_create(void);
unsigned ib_pool_destroy(ib_pool_t *pool); // returns the number of packets that were not given back, and frees them
unsigned ib_pool_live(const ib_pool_t *pool);
// All fields but grh and data are zero.
ib_packet_t *ib_packet_take(ib_pool_t *pool);
void ib_packet_give(ib_pool_t *pool, ib_packet_t *packet);
// Copies what is on the wire, not the owner's fields.
ib_packet_t *ib_packet_copy(ib_pool_t *pool, const ib_packet_t *packet);

// From LRH to VCRC (headers, payload padded to 4 B, ICRC, VCRC) and the two delimiters.
uint32_t ib_packet_wire_bytes(const ib_packet_t *packet);
// The bytes that PortXmitData counts: from LRH to ICRC.
uint32_t ib_packet_data_bytes(const ib_packet_t *packet);
uint32_t ib_packet_blocks(const ib_packet_t *packet);
// The data that go to memory: the payload, and before it the GRH of a datagram that has one.
static inline bool ib_packet_has_route(const ib_packet_t *packet)
{
    return packet->service == IB_UD && packet->global;
}
static inline const uint8_t *ib_packet_received(const ib_packet_t *packet)
{
    return (const uint8_t *)packet +
           (ib_packet_has_route(packet) ? offsetof(ib_packet_t, grh) : offsetof(ib_packet_t, data));
}
static inline uint16_t ib_packet_flags(const ib_packet_t *packet)
{
    return ib_opcode_flags[packet->opcode];
}

// A queue of packets through their `next`.
struct ib_queue {
    ib_packet_t *first, *last;
    uint32_t count;
};
static inline void ib_queue_push(struct ib_queue *queue, ib_packet_t *packet)
{
    packet->next = 0;
    if (queue->first == 0) {
        queue->first = packet;
    } else {
        queue->last->next = packet;
    }
    queue->last = packet;
    queue->count++;
}
static inline void ib_queue_push_front(struct ib_queue *queue, ib_packet_t *packet)
{
    packet->next = queue->first;
    if (queue->first == 0) {
        queue->last = packet;
    }
    queue->first = packet;
    queue->count++;
}
// Returns the packet before it, or NULL.
ib_packet_t *ib_queue_remove(struct ib_queue *queue, ib_packet_t *packet);
void ib_queue_insert(struct ib_queue *queue, ib_packet_t *after, ib_packet_t *packet); // after NULL: first
static inline ib_packet_t *ib_queue_pop(struct ib_queue *queue)
{
    ib_packet_t *packet = queue->first;
    queue->first = packet->next;
    queue->count--;
    packet->next = 0;
    return packet;
}

// PSNs are numbers modulo 2^24 (9.2.1): the distance from `from` to `to`, negative if `to` is behind.
static inline int32_t ib_psn_distance(uint32_t from, uint32_t to)
{
    uint32_t distance = (to - from) & IB_PSN_MASK;
    return distance < 0x800000 ? (int32_t)distance : (int32_t)distance - 0x1000000;
}
