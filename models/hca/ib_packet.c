#include "models/hca/ib_packet.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/status.h"

enum { LRH_BYTES = 8, BTH_BYTES = 12, ICRC_BYTES = 4, VCRC_BYTES = 2, DELIMITER_BYTES = 2 };
enum {
    DETH_BYTES = 8,
    XRCETH_BYTES = 4,
    RETH_BYTES = 16,
    ATOMIC_ETH_BYTES = 28,
    AETH_BYTES = 4,
    ATOMIC_ACK_BYTES = 8,
    IMM_BYTES = 4
};

const uint16_t ib_opcode_flags[IB_OPCODE_MASK + 1] = {
#define IB_OPCODE(name, code, flags) [IB_##name] = (flags),
#include "models/hca/ib_opcodes.def"
};

uint32_t ib_packet_wire_bytes(const ib_packet_t *packet)
{
    uint16_t flags = ib_packet_flags(packet);
    uint32_t bytes = LRH_BYTES + BTH_BYTES + ICRC_BYTES + VCRC_BYTES + DELIMITER_BYTES;
    bytes += packet->global ? IB_GRH_BYTES : 0;
    bytes += packet->service == IB_UD ? DETH_BYTES : 0;
    bytes += packet->service == IB_XRC && (flags & IB_IS_RESPONSE) == 0 ? XRCETH_BYTES : 0;
    bytes += flags & IB_HAS_RETH ? RETH_BYTES : 0;
    bytes += flags & IB_HAS_ATOMIC_ETH ? ATOMIC_ETH_BYTES : 0;
    bytes += flags & IB_HAS_AETH ? AETH_BYTES : 0;
    bytes += flags & IB_HAS_ATOMIC_ACK ? ATOMIC_ACK_BYTES : 0;
    bytes += flags & IB_HAS_IMMEDIATE ? IMM_BYTES : 0;
    return bytes + ((packet->bytes + 3) & ~3u);
}

_Static_assert(VCRC_BYTES + DELIMITER_BYTES == IB_FRAME_BYTES, "what is around the data");

uint32_t ib_packet_data_bytes(const ib_packet_t *packet)
{
    return ib_packet_wire_bytes(packet) - VCRC_BYTES - DELIMITER_BYTES;
}

uint32_t ib_packet_blocks(const ib_packet_t *packet)
{
    return (ib_packet_wire_bytes(packet) - DELIMITER_BYTES + IB_BLOCK_BYTES - 1) / IB_BLOCK_BYTES;
}

// --- pool ----------------------------------------------------------------------------------------------------------

// Every packet has a link to the next one that was made, for destruction.
struct pooled {
    ib_packet_t packet; // first, so that the two share their address
    struct pooled *made;
};

struct ib_pool {
    struct pooled *made;
    ib_packet_t *free;
    unsigned live;
};

ib_pool_t *ib_pool_create(void)
{
    return calloc(1, sizeof(ib_pool_t));
}

unsigned ib_pool_destroy(ib_pool_t *pool)
{
    if (pool == NULL) {
        return 0;
    }
    unsigned live = pool->live;
    while (pool->made != NULL) {
        struct pooled *pooled = pool->made;
        pool->made = pooled->made;
        free(pooled);
    }
    free(pool);
    return live;
}

unsigned ib_pool_live(const ib_pool_t *pool)
{
    return pool->live;
}

ib_packet_t *ib_packet_take(ib_pool_t *pool)
{
    ib_packet_t *packet = pool->free;
    if (packet != NULL) {
        pool->free = packet->next;
    } else {
        struct pooled *pooled = malloc(sizeof *pooled);
        if (pooled == NULL) {
            sim_panic("ib_pool", "no memory for a packet, %u are alive", pool->live);
        }
        pooled->made = pool->made;
        pool->made = pooled;
        packet = &pooled->packet;
    }
    pool->live++;
    memset(packet, 0, offsetof(ib_packet_t, grh));
    return packet;
}

void ib_packet_give(ib_pool_t *pool, ib_packet_t *packet)
{
    packet->next = pool->free;
    pool->free = packet;
    pool->live--;
}

ib_packet_t *ib_queue_remove(struct ib_queue *queue, ib_packet_t *packet)
{
    ib_packet_t *before = NULL;
    for (ib_packet_t *at = queue->first; at != packet; at = at->next) {
        before = at;
    }
    if (before == NULL) {
        queue->first = packet->next;
    } else {
        before->next = packet->next;
    }
    queue->last = queue->last == packet ? before : queue->last;
    queue->count--;
    packet->next = NULL;
    return before;
}

void ib_queue_insert(struct ib_queue *queue, ib_packet_t *after, ib_packet_t *packet)
{
    if (after == NULL) {
        ib_queue_push_front(queue, packet);
        return;
    }
    packet->next = after->next;
    after->next = packet;
    queue->last = queue->last == after ? packet : queue->last;
    queue->count++;
}

ib_packet_t *ib_packet_copy(ib_pool_t *pool, const ib_packet_t *packet)
{
    ib_packet_t *copy = ib_packet_take(pool);
    memcpy(copy, packet, offsetof(ib_packet_t, next));
    memcpy(copy->grh, packet->grh, IB_GRH_BYTES + (size_t)packet->bytes);
    return copy;
}
