// The packets between two nodes, and their limits. Little-endian, as the processors.
//
// Each end of a connection has a receive area in its own pinned memory, into which the other end writes.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// --- rings ----------------------------------------------------------------------------------------------------------

// Low latency: a packet is one TLP of 128 B. The board's memory has room for the slots' descriptors, two a slot, for
// all 15 peers of a sub-cluster.
#define TCAV_SMALL_SLOTS 16u
#define TCAV_SMALL_BYTES 128u
// High bandwidth: a page a packet, 256 KiB a direction; a batch keeps the board busy while the next one is filled.
#define TCAV_LARGE_SLOTS 64u
#define TCAV_LARGE_BYTES 4096u
#define TCAV_BATCH_SLOTS 16u

// The PSN pair of both rings, one word that is written after every packet: packets ever sent in each ring, and packets
// ever taken from each ring of the other direction. The receiver resets the word; a written word is never 0.
#define TCAV_COUNT_BITS 15u
#define TCAV_COUNT_MASK ((1u << TCAV_COUNT_BITS) - 1)
#define TCAV_PAIR_THERE (1ull << 63)

struct tcav_counts {
    uint32_t sent_small, sent_large, taken_small, taken_large;
};
static inline uint64_t tcav_pair_of(struct tcav_counts counts)
{
    return TCAV_PAIR_THERE | (uint64_t)(counts.sent_small & TCAV_COUNT_MASK) |
           (uint64_t)(counts.sent_large & TCAV_COUNT_MASK) << TCAV_COUNT_BITS |
           (uint64_t)(counts.taken_small & TCAV_COUNT_MASK) << 2 * TCAV_COUNT_BITS |
           (uint64_t)(counts.taken_large & TCAV_COUNT_MASK) << 3 * TCAV_COUNT_BITS;
}

// Acknowledged messages of a queue pair, by its table index: written by the processor, as they are sent without a
// packet.
#define TCAV_QPS_MAX          1024u
#define TCAV_ACK(qp, message) ((1ull << 63) | (uint64_t)(qp) << 24 | (message))

// The receive area. The send area, from which packets are copied, has the same rings.
struct tcav_area {
    uint64_t pair; // of both rings: the one written last
    uint64_t unused[7];
    uint64_t acks[TCAV_QPS_MAX];
    unsigned char small[TCAV_SMALL_SLOTS][TCAV_SMALL_BYTES];
    unsigned char large[TCAV_LARGE_SLOTS][TCAV_LARGE_BYTES];
};

// --- introduction ----------------------------------------------------------------------------------------------------

// Each node writes one of these into its unit of the other board's memory. `heard` is the nonce that was read from the
// other: a connection is complete only if each end has read the other's nonce, so data of earlier processes is ignored.
struct tcav_introduction {
    uint64_t area; // bus address of the writer's receive area for this peer
    uint32_t nonce, heard;
};

// --- packets --------------------------------------------------------------------------------------------------------

enum tcav_kind {
    TCAV_SEND = 1,
    TCAV_WRITE,
    TCAV_ASK_SEND,  // asks for the location of the data
    TCAV_ASK_WRITE, // the same for a range of memory
    TCAV_GRANT,     // struct tcav_location
    TCAV_DATA_DONE, // the data has arrived; carries the bytes around whole words
    TCAV_READ,      // struct tcav_location: where the data may be written
    TCAV_READ_DATA,
    TCAV_READ_DONE, // like DATA_DONE
    TCAV_SWAP,      // struct tcav_operands
    TCAV_ADD,
    TCAV_ATOMIC_DATA, // 8 B
    TCAV_NAK,         // immediate: enum tcav_nak, and the reason above it (tcav_nak_word)
    TCAV_RNR,         // immediate: code of the timer (IBA table 45)
    TCAV_NOT_READY,   // no queue pair accepts the message
    TCAV_RELEASE,     // nothing more is written to the location given for this message
    TCAV_BYE,         // the writer ends: no more packets
    TCAV_DATAGRAM     // key: the Q_Key; address: struct tcav_route
};

enum tcav_nak { TCAV_NAK_ACCESS, TCAV_NAK_INVALID, TCAV_NAK_OPERATION };
// The reason is an enum hca_fault, for messages to users.
static inline uint32_t tcav_nak_word(enum tcav_nak nak, unsigned reason)
{
    return (uint32_t)nak | reason << 8;
}

#define TCAV_IMMEDIATE 1u
#define TCAV_SOLICITED 2u

#define TCAV_NUMBER_MASK 0xffffffu // of messages and queue pairs

struct tcav_header {
    uint32_t order; // in the connection, over both rings
    uint32_t qp;    // the receiving queue pair
    uint8_t kind;
    uint8_t flags;
    uint8_t skew; // bytes between header and payload
    uint8_t unused;
    uint16_t bytes; // of payload
    uint16_t unused2;
    uint32_t message;
    uint32_t offset; // of the payload in the message
    uint32_t length; // of the message
    uint32_t immediate;
    uint32_t source_qp;
    uint32_t key;
    uint64_t address;
};
_Static_assert(sizeof(struct tcav_header) == 48, "a header has 48 bytes");

#define TCAV_SMALL_PAYLOAD (TCAV_SMALL_BYTES - 48u)
// A multiple of 16, and 16 less than fits: data of the board's DMA keeps its low 4 address bits.
#define TCAV_LARGE_PAYLOAD (TCAV_LARGE_BYTES - 48u - 16u)

// Memory that boards can reach: a block of the node's window and an offset in it.
enum tcav_block { TCAV_NOWHERE, TCAV_HOST, TCAV_GPU0, TCAV_GPU1 };
struct tcav_location {
    uint64_t offset;
    uint32_t block, unused;
};

struct tcav_operands {
    uint64_t compare, swap_add;
};

// The address field of a datagram's header, if its address handle has a global route.
struct tcav_route {
    bool there;
    uint32_t flow_label;
    uint8_t traffic_class, hop_limit;
};
static inline uint64_t tcav_route_pack(struct tcav_route route)
{
    return route.there
               ? 1ull << 63 | (uint64_t)route.flow_label << 16 | (uint64_t)route.traffic_class << 8 | route.hop_limit
               : 0;
}
static inline struct tcav_route tcav_route_unpack(uint64_t packed)
{
    return (struct tcav_route){packed >> 63 != 0, (uint32_t)(packed >> 16) & 0xfffff, (uint8_t)(packed >> 8),
                               (uint8_t)packed};
}

// --- limits ---------------------------------------------------------------------------------------------------------

#define TCAV_MESSAGE_BYTES_MAX (1u << 30)
#define TCAV_SGES_MAX          8u
// A datagram: the MTU, and the reserved bytes before it.
#define TCAV_DATAGRAM_BYTES_MAX 4096u
#define TCAV_GRH_BYTES          40u
#define TCAV_INLINE_BYTES       128u // what Open MPI asks of an unknown device
#define TCAV_WRS_MAX            8192u
#define TCAV_READS_MAX          16u
// From this size on the board moves the data itself if it can. Sends and writes must first ask for the location.
#define TCAV_SEND_DIRECT_BYTES  32768u
#define TCAV_WRITE_DIRECT_BYTES 8192u
#define TCAV_READ_DIRECT_BYTES  8192u
