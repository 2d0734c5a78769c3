// Connections: how two nodes set one up, and what they write to each other.
//
// A library does not know where the memory of another node is. The only location that every node knows is the board's
// memory: its last units belong to the nodes of the sub-cluster, one each (libtca/board_memory.h). A library writes
// into its unit on the other board the address of its receive area, and the nonce that it has read from the other. A
// library that reads its own nonce there knows that the writer is alive and that the unit is addressed to it.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/libtca/board_memory.h"
#include "verbs-shim/tca-verbs/internal.h"
#include "verbs-shim/libtca/tca.h"

// Pair words are 16 B apart, as data that the board copies keeps its low 4 address bits.
#define PAIR_STRIDE 2u
#define PAIRS       (TCAV_SMALL_SLOTS + 3u)
#define PAIR_ALONE  (TCAV_SMALL_SLOTS + 2u)

// Descriptors of a packet's chain, and of all: one fewer for the pair without a packet.
static uint32_t chain_units(const struct tcav_context *context)
{
    struct peach2_transfer end;
    return 2u + tcav_chain_end(context, &end);
}

static uint32_t all_units(const struct tcav_context *context)
{
    return (TCAV_SMALL_SLOTS + 1u) * chain_units(context) - 1u;
}

struct memory {
    struct tcav_area receive, send;
    uint64_t pairs[PAIRS * PAIR_STRIDE];
};

size_t tca_verbs_connection_bytes(void)
{
    return sizeof(struct memory) + sizeof(struct tcav_peer);
}

uint32_t tcav_path_node(const struct ibv_ah_attr *ah)
{
    return ah->dlid != 0 || !ah->is_global ? ah->dlid - 1u : ah->grh.dgid.raw[15] - 1u;
}

uint64_t tcav_peer_area(const struct tcav_peer *peer, uint64_t offset)
{
    const struct tcav_location memory = {.offset = peer->remote_area + offset, .block = TCAV_HOST};
    return tcav_location_address(peer->context, peer->node, memory);
}

static uint64_t memory_bus(const struct tcav_peer *peer, const void *at)
{
    return peer->memory_bus + (uint64_t)((const char *)at - (const char *)peer->memory);
}

// --- introduction ----------------------------------------------------------------------------------------------------

static uint32_t unit_offset(uint32_t node)
{
    return (TCA_BOARD_INTRODUCTIONS + node) * TCA_BOARD_UNIT_BYTES;
}

void tcav_peer_introduce(struct tcav_peer *peer)
{
    const struct tcav_context *context = peer->context;
    const struct tcav_introduction introduction = {memory_bus(peer, peer->area), peer->nonce, peer->remote_nonce};
    (void)peach2_pio_write(context->board,
                           peach2_board_memory_address(context->board, peer->node, unit_offset(context->node)),
                           &introduction, sizeof introduction);
    if (context->datagrams) { // otherwise the peer polls, as its queue pairs are connected too
        (void)peach2_interrupt_raise(context->board, peer->node, TCAV_INTRODUCTION_INTERRUPT);
    }
}

bool tcav_peer_is_new(const struct tcav_context *context, uint32_t node)
{
    uint64_t nonces;
    const struct tcav_peer *peer = context->peers[node];
    bool read = peach2_board_memory_read(context->board, unit_offset(node) + 8, &nonces) == 0;
    return read && (uint32_t)nonces != 0 && (peer == NULL || (uint32_t)nonces != peer->remote_nonce);
}

// Creates chains for small packets and their pairs, which are written only once.
static int chains_build(struct tcav_peer *peer)
{
    peach2_handle_t *board = peer->context->board;
    enum peach2_chain_memory memory = peer->has_units ? PEACH2_CHAIN_BOARD : PEACH2_CHAIN_HOST;
    uint64_t pair = tcav_peer_area(peer, offsetof(struct tcav_area, pair));
    for (uint32_t slot = 0; slot < TCAV_SMALL_SLOTS; slot++) {
        struct peach2_transfer transfers[3] = {
            {.source = memory_bus(peer, peer->send->small[slot]),
             .destination = tcav_peer_area(peer, offsetof(struct tcav_area, small) + slot * TCAV_SMALL_BYTES),
             .bytes = TCAV_SMALL_BYTES},
            {.source = memory_bus(peer, &peer->pairs[slot * PAIR_STRIDE]),
             .destination = pair,
             .bytes = 8,
             .flags = tcav_chain_flags(peer->context)},
        };
        uint32_t count = 2 + tcav_chain_end(peer->context, &transfers[2]);
        int error =
            peach2_chain_create(board, memory, peer->board_unit + count * slot, transfers, count, &peer->small[slot]);
        if (error != 0) {
            return error;
        }
    }
    struct peach2_transfer alone[2] = {
        {.source = memory_bus(peer, &peer->pairs[PAIR_ALONE * PAIR_STRIDE]), .destination = pair, .bytes = 8}};
    uint32_t count = 1 + tcav_chain_end(peer->context, &alone[1]);
    return peach2_chain_create(board, memory, peer->board_unit + (count + 1) * TCAV_SMALL_SLOTS, alone, count,
                               &peer->pair_alone);
}

static void connected(struct tcav_peer *peer, uint64_t remote_area)
{
    peer->remote_area = remote_area;
    peer->state = chains_build(peer) == 0 ? TCAV_PEER_CONNECTED : TCAV_PEER_GONE;
}

void tcav_peer_step(struct tcav_peer *peer)
{
    peach2_handle_t *board = peer->context->board;
    uint64_t area, nonces;
    if (peach2_board_memory_read(board, unit_offset(peer->node) + 8, &nonces) != 0) {
        return;
    }
    uint32_t nonce = (uint32_t)nonces, heard = (uint32_t)(nonces >> 32);
    if (nonce != 0 && nonce != peer->remote_nonce) {
        peer->remote_nonce = nonce;
        tcav_peer_introduce(peer);
    }
    if (nonce != 0 && heard == peer->nonce && peach2_board_memory_read(board, unit_offset(peer->node), &area) == 0) {
        connected(peer, area);
    }
}

// --- life -----------------------------------------------------------------------------------------------------------

static int peer_start(struct tcav_peer *peer)
{
    struct tcav_context *context = peer->context;
    tcaHandle handle;
    if (tcaMalloc(&peer->memory, sizeof(struct memory), tcaMemoryCPU) != tcaSuccess) {
        return -ENOMEM;
    }
    if (tcaCreateHandle(&handle, peer->memory, sizeof(struct memory), tcaMemoryCPU) != tcaSuccess) {
        return -ENOMEM;
    }
    struct memory *memory = peer->memory;
    peer->memory_bus = handle.busAddress;
    peer->area = &memory->receive;
    peer->send = &memory->send;
    peer->pairs = memory->pairs;
    if (context->backend.ops->ignore_writes != NULL) { // each packet is followed by the pair
        size_t rings = sizeof(struct tcav_area) - offsetof(struct tcav_area, small);
        context->backend.ops->ignore_writes(context->backend.ctx, memory->receive.small, rings);
    }
    if (context->backend.ops->event_writes != NULL) {
        context->backend.ops->event_writes(context->backend.ctx, &memory->receive, offsetof(struct tcav_area, small));
    }
    // Allocated here and not when the chains are built: the progress thread must never call libtca, which is the
    // program's.
    peer->has_units = tca_board_take(tca_context_current(), all_units(context), &peer->board_unit);
    peer->began_ps = tcav_now_ps(context);
    peer->nonce = (uint32_t)(peer->began_ps / TCAV_NS) | 1;
    if (peer->node == context->node) {
        connected(peer, memory_bus(peer, peer->area));
    } else {
        tcav_peer_introduce(peer);
    }
    return 0;
}

int tcav_peer_connect(struct tcav_context *context, uint32_t node, struct tcav_peer **peer_out)
{
    struct tcav_peer *peer = context->peers[node];
    if (peer != NULL && peer->state == TCAV_PEER_GONE) {
        for (const struct tcav_qp *qp = context->qps; qp != NULL; qp = qp->next) {
            if (qp->peer == peer && qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_ERR) {
                *peer_out = peer; // these queue pairs fail with it
                return 0;
            }
        }
        for (struct tcav_qp *qp = context->qps; qp != NULL; qp = qp->next) {
            qp->peer = qp->peer == peer ? NULL : qp->peer;
        }
        // The board may still run a chain of this peer and write its completion.
        if (!tcav_channel_drain(context)) {
            return -EBUSY;
        }
        tcav_peer_free(peer);
        peer = NULL;
    }
    if (peer == NULL) {
        peer = calloc(1, sizeof *peer);
        if (peer == NULL) {
            return -ENOMEM;
        }
        peer->context = context;
        peer->node = node;
        context->peers[node] = peer;
        int error = peer_start(peer);
        if (error != 0) {
            tcav_peer_free(peer);
            return error;
        }
    }
    *peer_out = peer;
    return 0;
}

void tcav_peer_bye(struct tcav_peer *peer)
{
    if (peer->state == TCAV_PEER_CONNECTED && tcav_ring_small_room(peer) != 0) {
        tcav_ring_send_small(peer, (struct tcav_header){.kind = TCAV_BYE}, NULL);
    }
}

void tcav_peer_notify(struct tcav_peer *peer, struct tcav_header header)
{
    if (peer->refused_count == peer->refused_size) {
        unsigned size = peer->refused_size != 0 ? 2 * peer->refused_size : 16;
        struct tcav_header *larger = malloc(size * sizeof *larger);
        if (larger == NULL) {
            peer->state = TCAV_PEER_GONE;
            return;
        }
        for (unsigned i = 0; i < peer->refused_count; i++) {
            larger[i] = peer->refused[(peer->refused_head + i) % peer->refused_size];
        }
        free(peer->refused);
        peer->refused = larger;
        peer->refused_size = size;
        peer->refused_head = 0;
    }
    peer->refused[(peer->refused_head + peer->refused_count++) % peer->refused_size] = header;
}

bool tcav_peer_notify_step(struct tcav_peer *peer)
{
    if (peer->refused_count == 0 || tcav_ring_small_room(peer) == 0) {
        return false;
    }
    const struct tcav_header header = peer->refused[peer->refused_head];
    peer->refused_head = (peer->refused_head + 1) % peer->refused_size;
    peer->refused_count--;
    tcav_ring_send_small(peer, header, NULL);
    return true;
}

void tcav_peer_free(struct tcav_peer *peer)
{
    struct tcav_context *context = peer->context;
    tcav_grants_drop(context, peer);
    if (!context->abandoned) {
        for (unsigned i = 0; i < TCAV_SMALL_SLOTS; i++) {
            peach2_chain_destroy(peer->small[i]);
        }
        peach2_chain_destroy(peer->pair_alone);
        if (peer->has_units) {
            tca_board_give(tca_context_current(), peer->board_unit, all_units(peer->context));
        }
        if (peer->memory != NULL) {
            (void)tcaFree(peer->memory, tcaMemoryCPU);
        }
    }
    context->peers[peer->node] = NULL;
    free(peer->refused);
    free(peer);
}
