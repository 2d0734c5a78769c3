// Requests of a walk's programs, of every kind, valid and invalid.
#include <endian.h>
#include <string.h>

#include "walk.h"

// Sizes around the limits of both devices, and others.
static uint32_t size_draw(struct walk_node *node)
{
    static const uint32_t limits[] = {0, 1, 4, 8, 64, 80, 81, 128, 1024, 1025, 2048, 4032, 4033, 8192, 32768, 36000};
    switch (walk_draw(node, 4)) {
    case 0:
        return limits[walk_draw(node, sizeof limits / sizeof *limits)];
    case 1:
        return walk_draw(node, WALK_ROOM + 1);
    default:
        return walk_draw(node, 300);
    }
}

// Pieces with gaps, some of them empty.
static struct walk_pieces pieces_draw(struct walk_node *node, uint32_t bytes)
{
    struct walk_pieces pieces = {.count = 1 + (int)walk_draw(node, WALK_PIECES)};
    uint32_t at = 16 + walk_draw(node, 64), left = bytes;
    for (int i = 0; i < pieces.count; i++) {
        uint32_t part = i == pieces.count - 1 ? left : walk_draw(node, left + 1);
        pieces.offset[i] = at;
        pieces.bytes[i] = part;
        left -= part;
        at += part + 1 + walk_draw(node, 600);
    }
    return pieces;
}

static void sges_fill(const struct walk_node *node, const struct walk_pieces *pieces, uint32_t at, struct ibv_sge *sges)
{
    for (int i = 0; i < pieces->count; i++) {
        sges[i] = fixture_sge(node->side, at + pieces->offset[i], pieces->bytes[i]);
    }
}

// --- receives --------------------------------------------------------------------------------------------------------

static void receive_post(struct walk_node *node, unsigned peer, bool bad)
{
    struct walk_end *end = &node->ends[peer];
    struct walk_receive *receive = &end->receives[(end->receive_head + end->receive_count++) % WALK_RECEIVES];
    struct ibv_sge sges[WALK_PIECES];
    struct ibv_recv_wr *refused = NULL;
    uint32_t at = walk_receive_at(peer, end->receive_serial);
    receive->id = WALK_RECEIVE_ID | end->receive_serial++;
    receive->bad = bad;
    receive->pieces = pieces_draw(node, WALK_ROOM);
    memset(node->side->memory + at, 0xee, WALK_SLOT_BYTES);
    sges_fill(node, &receive->pieces, at, sges);
    for (int i = 0; i < receive->pieces.count && bad; i++) {
        sges[i].lkey ^= 0x5500;
    }
    struct ibv_recv_wr wr = {.wr_id = receive->id, .sg_list = sges, .num_sge = receive->pieces.count};
    int error = ibv_post_recv(node->side->qps[peer], &wr, &refused);
    if (error != 0) {
        WALK_FAIL(node, "a receive is refused with %d", error);
    }
}

void walk_receives_post(struct walk_node *node, unsigned peer)
{
    struct walk_end *end = &node->ends[peer];
    while (end->receive_count < WALK_RECEIVES && !end->silent && !end->receives_failed) {
        receive_post(node, peer, false);
    }
}

// --- requests --------------------------------------------------------------------------------------------------------

static bool is_atomic(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool takes_receive(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

// Takes a free slot; false: there is none.
static bool slot_take(struct walk_node *node, struct walk_request *request)
{
    for (uint32_t i = 0; i < WALK_SLOTS; i++) {
        if (!node->slots[i]) {
            node->slots[i] = true;
            request->slot = i;
            request->has_slot = true;
            return true;
        }
    }
    return false;
}

static struct walk_request request_draw(struct walk_node *node)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND,
                                                 IBV_WR_SEND_WITH_IMM,
                                                 IBV_WR_RDMA_WRITE,
                                                 IBV_WR_RDMA_WRITE,
                                                 IBV_WR_RDMA_WRITE_WITH_IMM,
                                                 IBV_WR_RDMA_READ,
                                                 IBV_WR_ATOMIC_CMP_AND_SWP,
                                                 IBV_WR_ATOMIC_FETCH_AND_ADD,
                                                 IBV_WR_RDMA_READ};
    struct walk_request request = {.opcode = opcodes[walk_draw(node, sizeof opcodes / sizeof *opcodes)]};
    request.bytes = is_atomic(request.opcode) ? 8 : size_draw(node);
    request.at = walk_draw(node, WALK_AREA_BYTES - request.bytes + 1);
    request.at &= is_atomic(request.opcode) ? ~7u : ~0u;
    request.seed = walk_draw(node, 1000000);
    request.signaled = walk_draw(node, 3) != 0;
    request.compare_add = walk_draw(node, 4);
    request.swap = walk_draw(node, 4);
    request.pieces = pieces_draw(node, request.bytes);
    return request;
}

// IBA 10.8.3.3, table 79: without a fence a read or an atomic may see the writes of a later request.
static bool fence_needed(const struct walk_end *end, const struct walk_request *request)
{
    for (unsigned i = 0; i < end->count; i++) {
        const struct walk_request *before = &end->requests[(end->head + i) % FIXTURE_DEPTH];
        bool returns = before->opcode == IBV_WR_RDMA_READ || is_atomic(before->opcode);
        if (returns && before->at < request->at + request->bytes && request->at < before->at + before->bytes) {
            return true;
        }
    }
    return false;
}

static struct ibv_send_wr wr_of(struct walk_node *node, unsigned peer, const struct walk_request *request,
                                struct ibv_sge *sges)
{
    const struct side *other = &node->walk->fixture->sides[peer];
    uint64_t address = (uintptr_t)other->memory + node->side->index * WALK_AREA_BYTES + request->at;
    struct ibv_send_wr wr = {.wr_id = request->id,
                             .sg_list = sges,
                             .num_sge = request->pieces.count,
                             .opcode = request->opcode,
                             .imm_data = htobe32(request->seed),
                             .send_flags = request->signaled ? IBV_SEND_SIGNALED : 0};
    sges_fill(node, &request->pieces, WALK_SLOTS_AT + request->slot * WALK_SLOT_BYTES, sges);
    if (is_atomic(request->opcode)) {
        wr.wr.atomic.remote_addr = address;
        wr.wr.atomic.rkey = other->mr->rkey;
        wr.wr.atomic.compare_add = request->compare_add;
        wr.wr.atomic.swap = request->swap;
    } else {
        wr.wr.rdma.remote_addr = address;
        wr.wr.rdma.rkey = other->mr->rkey;
    }
    bool fenced = walk_draw(node, 8) == 0 || fence_needed(&node->ends[peer], request);
    wr.send_flags |= fenced ? (unsigned)IBV_SEND_FENCE : 0;
    return wr;
}

static void data_make(struct walk_node *node, const struct walk_request *request)
{
    static uint8_t data[WALK_SLOT_BYTES];
    memset(walk_slot(node, request->slot), 0xee, WALK_SLOT_BYTES);
    if (request->opcode != IBV_WR_RDMA_READ && !is_atomic(request->opcode)) {
        fixture_fill(data, request->bytes, request->seed);
        walk_scatter(&request->pieces, walk_slot(node, request->slot), data);
    }
}

static void message_note(struct walk_end *end, const struct walk_request *request)
{
    if (takes_receive(request->opcode)) {
        end->messages[end->sent++ % WALK_MESSAGES] =
            (struct walk_message){request->opcode, request->bytes, request->seed, request->seed};
    }
}

static void request_post(struct walk_node *node, unsigned peer, struct walk_request *request, struct ibv_send_wr *wr)
{
    struct walk_end *end = &node->ends[peer];
    struct ibv_send_wr *refused = NULL;
    message_note(end, request);
    end->requests[(end->head + end->count++) % FIXTURE_DEPTH] = *request;
    int error = ibv_post_send(node->side->qps[peer], wr, &refused);
    if (error != 0) {
        WALK_FAIL(node, "request %llu to node %u is refused with %d", (unsigned long long)request->id, peer, error);
    }
    node->walk->requests++;
}

static bool may_post(const struct walk_node *node, unsigned peer)
{
    const struct walk_end *end = &node->ends[peer];
    return !end->silent && end->count < FIXTURE_DEPTH - 1 && end->sent < WALK_MESSAGES - 1;
}

void walk_post(struct walk_node *node, unsigned peer)
{
    struct walk_end *end = &node->ends[peer];
    struct ibv_sge sges[WALK_PIECES];
    struct walk_request request = request_draw(node);
    if (!may_post(node, peer) || !slot_take(node, &request)) {
        return;
    }
    request.id = end->serial++;
    request.signaled |= end->count >= FIXTURE_DEPTH / 2;
    data_make(node, &request);
    struct ibv_send_wr wr = wr_of(node, peer, &request, sges);
    bool inlined = request.opcode != IBV_WR_RDMA_READ && !is_atomic(request.opcode) && request.bytes <= 64 &&
                   walk_draw(node, 2) == 0;
    if (inlined) { // its slot is free at once
        wr.send_flags |= IBV_SEND_INLINE;
        request.has_slot = false;
    }
    request_post(node, peer, &request, &wr);
    if (inlined) {
        memset(walk_slot(node, request.slot), 0xdd, WALK_SLOT_BYTES);
        node->slots[request.slot] = false;
    }
}

void walk_flush(struct walk_node *node, unsigned peer)
{
    struct walk_end *end = &node->ends[peer];
    struct walk_request request = {
        .id = end->serial, .opcode = IBV_WR_RDMA_WRITE, .signaled = true, .pieces = {.count = 0}};
    bool needed = end->count != 0 && !end->requests[(end->head + end->count - 1) % FIXTURE_DEPTH].signaled;
    if (needed && !end->silent) {
        struct ibv_sge sges[WALK_PIECES];
        struct ibv_send_wr wr = wr_of(node, peer, &request, sges);
        end->serial++;
        request_post(node, peer, &request, &wr);
    }
}

// --- errors ----------------------------------------------------------------------------------------------------------

enum hurt { WRONG_RKEY, OUT_OF_RANGE, WRONG_LKEY, MISALIGNED, TOO_LONG, WRONG_LENGTH, HURTS };

// Makes the request invalid and sets the expected result.
static void make_invalid(enum hurt hurt, struct walk_request *request, struct ibv_send_wr *wr)
{
    switch (hurt) {
    case WRONG_RKEY:
        wr->wr.rdma.rkey ^= 0x5500;
        request->expected = IBV_WC_REM_ACCESS_ERR;
        break;
    case OUT_OF_RANGE:
        wr->wr.rdma.remote_addr += FIXTURE_BYTES;
        request->expected = IBV_WC_REM_ACCESS_ERR;
        break;
    case WRONG_LKEY:
        wr->sg_list[0].lkey ^= 0x5500;
        request->expected = IBV_WC_LOC_PROT_ERR;
        break;
    case MISALIGNED:
        wr->wr.atomic.remote_addr += 4;
        request->expected = IBV_WC_REM_INV_REQ_ERR;
        break;
    case TOO_LONG:
        wr->sg_list[0].length = request->bytes = WALK_ROOM + 1;
        request->expected = IBV_WC_REM_INV_REQ_ERR;
        break;
    case WRONG_LENGTH:
        wr->sg_list[0].length = 4;
        request->expected = IBV_WC_LOC_LEN_ERR;
        break;
    case HURTS:
        break;
    }
}

static void bad_post(struct walk_node *node, unsigned peer)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
    enum hurt hurt = (enum hurt)walk_draw(node, HURTS);
    struct ibv_sge sges[WALK_PIECES];
    struct walk_request request = request_draw(node);
    if (!may_post(node, peer) || !slot_take(node, &request)) {
        return;
    }
    bool atomic = hurt == MISALIGNED || hurt == WRONG_LENGTH;
    request.opcode = atomic             ? IBV_WR_ATOMIC_FETCH_AND_ADD
                     : hurt == TOO_LONG ? IBV_WR_SEND
                                        : opcodes[walk_draw(node, 2)];
    request.bytes = atomic ? 8 : 1 + walk_draw(node, 20000);
    request.at = walk_draw(node, 1000) * 8;
    request.pieces = (struct walk_pieces){.count = 1, .offset = {64}, .bytes = {request.bytes}};
    request.id = node->ends[peer].serial++;
    data_make(node, &request);
    struct ibv_send_wr wr = wr_of(node, peer, &request, sges);
    make_invalid(hurt, &request, &wr);
    node->ends[peer].guilty = true;
    node->walk->errors++;
    request_post(node, peer, &request, &wr);
}

// Goes to ERR or RESET by the program's own choice. The effect of requests that RESET drops is unknown.
static void state_change(struct walk_node *node, unsigned peer, enum ibv_qp_state state)
{
    struct walk_end *end = &node->ends[peer];
    end->guilty = true;
    EXPECT_EQ(fixture_modify(node->side, node->side->qps[peer], state, node->side, 0), 0);
    node->walk->errors++;
    if (state != IBV_QPS_RESET) {
        return;
    }
    end->silent = true;
    for (; end->count != 0; end->count--, end->head++) {
        const struct walk_request *request = &end->requests[end->head % FIXTURE_DEPTH];
        if (request->expected == IBV_WC_SUCCESS) {
            end->doubtful[end->doubts++] = *request;
        }
        node->slots[request->slot] &= !request->has_slot;
    }
    end->receive_count = 0;
}

void walk_hurt(struct walk_node *node, unsigned peer)
{
    struct walk_end *end = &node->ends[peer];
    if (end->silent || end->doubts != 0) {
        return;
    }
    switch (walk_draw(node, 6)) {
    case 0:
        state_change(node, peer, IBV_QPS_ERR);
        break;
    case 1:
        state_change(node, peer, IBV_QPS_RESET);
        break;
    case 2:
        if (end->receive_count < WALK_RECEIVES && !end->receives_failed) {
            end->guilty = true;
            node->walk->errors++;
            receive_post(node, peer, true);
        }
        break;
    default:
        bad_post(node, peer);
        break;
    }
}
