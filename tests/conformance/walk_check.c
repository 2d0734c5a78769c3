// Checks the completions and the memory of a walk.
#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "walk.h"

void walk_fail(const struct walk_node *node, int line, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    FAIL("seed %llu of %u nodes, node %u at %llu ps, line %d: %s", (unsigned long long)node->walk->seed,
         node->walk->fixture->nodes, node->side->index, (unsigned long long)fixture_now_ps(node->side), line, text);
}

void walk_gather(const struct walk_pieces *pieces, const uint8_t *slot, uint8_t *data)
{
    for (int i = 0; i < pieces->count; i++) {
        memcpy(data, slot + pieces->offset[i], pieces->bytes[i]);
        data += pieces->bytes[i];
    }
}

void walk_scatter(const struct walk_pieces *pieces, uint8_t *slot, const uint8_t *data)
{
    for (int i = 0; i < pieces->count; i++) {
        memcpy(slot + pieces->offset[i], data, pieces->bytes[i]);
        data += pieces->bytes[i];
    }
}

// true: a slot that was filled with 0xee holds these bytes in the pieces and nothing else.
static bool slot_holds(const uint8_t *slot, const struct walk_pieces *pieces, const uint8_t *data, uint32_t bytes)
{
    static uint8_t expected[WALK_SLOT_BYTES];
    memset(expected, 0xee, sizeof expected);
    for (int i = 0; i < pieces->count && bytes > 0; i++) {
        uint32_t part = bytes < pieces->bytes[i] ? bytes : pieces->bytes[i];
        memcpy(expected + pieces->offset[i], data, part);
        data += part;
        bytes -= part;
    }
    return memcmp(slot, expected, sizeof expected) == 0;
}

// --- requests --------------------------------------------------------------------------------------------------------

static bool is_write(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void atomic_apply(struct walk_node *node, uint8_t *word, const struct walk_request *request)
{
    uint64_t before, after;
    memcpy(&before, word, sizeof before);
    after = before + request->compare_add;
    if (request->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        after = before == request->compare_add ? request->swap : before;
    }
    memcpy(word, &after, sizeof after);
    if (!slot_holds(walk_slot(node, request->slot), &request->pieces, (const uint8_t *)&before, sizeof before)) {
        WALK_FAIL(node, "atomic %llu did not bring %llu", (unsigned long long)request->id, (unsigned long long)before);
    }
}

// Applies an executed request to the model.
static void apply(struct walk_node *node, unsigned peer, const struct walk_request *request)
{
    uint8_t *at = node->ends[peer].model + request->at;
    if (request->expected != IBV_WC_SUCCESS) {
        WALK_FAIL(node, "request %llu should have failed", (unsigned long long)request->id);
    } else if (is_write(request->opcode)) {
        fixture_fill(at, request->bytes, request->seed);
    } else if (request->opcode == IBV_WR_RDMA_READ) {
        if (!slot_holds(walk_slot(node, request->slot), &request->pieces, at, request->bytes)) {
            WALK_FAIL(node, "read %llu of %u B at %u brought other bytes", (unsigned long long)request->id,
                      request->bytes, request->at);
        }
    } else if (request->opcode != IBV_WR_SEND && request->opcode != IBV_WR_SEND_WITH_IMM) {
        atomic_apply(node, at, request);
    }
}

static const struct walk_request *request_pop(struct walk_node *node, struct walk_end *end)
{
    const struct walk_request *request = &end->requests[end->head++ % FIXTURE_DEPTH];
    end->count--;
    node->slots[request->slot] &= !request->has_slot;
    return request;
}

// The status may come from its own error, or from one that the peer made.
static void status_check(struct walk_node *node, unsigned peer, const struct walk_request *request,
                         const struct ibv_wc *wc)
{
    const struct walk_end *end = &node->ends[peer], *other = &node->walk->nodes[peer].ends[node->side->index];
    bool expected = wc->status == IBV_WC_WR_FLUSH_ERR && (end->failed || end->guilty || other->guilty);
    expected |= !end->failed && wc->status == request->expected;
    expected |= !end->failed && other->guilty && // it left, or its receive was bad
                (wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_REM_OP_ERR);
    // A lost NAK or an answer before it cannot be retransmitted: the peer does not answer.
    expected |= !end->failed && node->walk->fixture->loss_every != 0 && (end->guilty || other->guilty) &&
                wc->status == IBV_WC_RETRY_EXC_ERR;
    if (!expected) {
        WALK_FAIL(node, "request %llu (opcode %d, %u B) to node %u: %s, not %s", (unsigned long long)request->id,
                  (int)request->opcode, request->bytes, peer, ibv_wc_status_str(wc->status),
                  ibv_wc_status_str(end->failed ? IBV_WC_WR_FLUSH_ERR : request->expected));
    }
}

static void request_complete(struct walk_node *node, unsigned peer, const struct ibv_wc *wc)
{
    struct walk_end *end = &node->ends[peer];
    while (end->count != 0 && end->requests[end->head % FIXTURE_DEPTH].id != wc->wr_id) {
        const struct walk_request *silent = request_pop(node, end);
        if (silent->signaled || end->failed) {
            WALK_FAIL(node, "request %llu to node %u did not complete", (unsigned long long)silent->id, peer);
        }
        apply(node, peer, silent);
    }
    if (end->count == 0) {
        WALK_FAIL(node, "completion %llu of node %u is of no request", (unsigned long long)wc->wr_id, peer);
        return;
    }
    const struct walk_request *request = request_pop(node, end);
    if (wc->status == IBV_WC_SUCCESS && !end->failed && request->signaled) {
        apply(node, peer, request);
        return;
    }
    status_check(node, peer, request, wc);
    if (request->expected == IBV_WC_SUCCESS && end->doubts < FIXTURE_DEPTH) { // no more were posted when it failed
        end->doubtful[end->doubts++] = *request;
    }
    node->walk->flushed++;
    end->failed = true;
}

// --- receives --------------------------------------------------------------------------------------------------------

static void message_check(struct walk_node *node, unsigned peer, const struct walk_receive *receive,
                          const struct ibv_wc *wc)
{
    static uint8_t data[WALK_SLOT_BYTES];
    struct walk_end *end = &node->ends[peer];
    const struct walk_end *sender = &node->walk->nodes[peer].ends[node->side->index];
    if (end->taken == sender->sent) {
        WALK_FAIL(node, "node %u sent no message %u", peer, end->taken);
        return;
    }
    const struct walk_message *message = &sender->messages[end->taken++ % WALK_MESSAGES];
    bool write = message->opcode == IBV_WR_RDMA_WRITE_WITH_IMM, immediate = message->opcode != IBV_WR_SEND;
    bool right = wc->byte_len == message->bytes && wc->opcode == (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV) &&
                 (wc->wc_flags & IBV_WC_WITH_IMM) == (immediate ? IBV_WC_WITH_IMM : 0) &&
                 (!immediate || be32toh(wc->imm_data) == message->immediate) && !receive->bad;
    fixture_fill(data, message->bytes, message->seed);
    right &= slot_holds(node->side->memory + walk_receive_at(peer, receive->id), &receive->pieces, data,
                        write ? 0 : message->bytes);
    if (!right) {
        WALK_FAIL(node, "message of node %u, opcode %d, %u B: came with %u B or other bytes", peer,
                  (int)message->opcode, message->bytes, wc->byte_len);
    }
    node->walk->messages++;
}

static void receive_complete(struct walk_node *node, unsigned peer, const struct ibv_wc *wc)
{
    struct walk_end *end = &node->ends[peer];
    const struct walk_end *other = &node->walk->nodes[peer].ends[node->side->index];
    const struct walk_receive receive = end->receives[end->receive_head++ % WALK_RECEIVES];
    if (end->receive_count-- == 0 || receive.id != wc->wr_id) {
        WALK_FAIL(node, "receive %llx of node %u completes out of turn", (unsigned long long)wc->wr_id, peer);
    } else if (wc->status == IBV_WC_SUCCESS && !end->receives_failed) {
        message_check(node, peer, &receive, wc);
        walk_receives_post(node, peer);
    } else {
        bool guilt = end->guilty || other->guilty;
        bool expected = guilt && (wc->status == IBV_WC_WR_FLUSH_ERR ||
                                  (!end->receives_failed && wc->status == IBV_WC_LOC_LEN_ERR && other->guilty) ||
                                  (!end->receives_failed && wc->status == IBV_WC_LOC_PROT_ERR && receive.bad));
        if (!expected) {
            WALK_FAIL(node, "receive of node %u: %s", peer, ibv_wc_status_str(wc->status));
        }
        end->receives_failed = true;
    }
}

void walk_complete(struct walk_node *node, const struct ibv_wc *wc)
{
    for (unsigned peer = 0; peer < node->walk->fixture->nodes; peer++) {
        if (node->side->qps[peer]->qp_num == wc->qp_num) {
            bool receive = (wc->wr_id & WALK_RECEIVE_ID) != 0;
            receive ? receive_complete(node, peer, wc) : request_complete(node, peer, wc);
            return;
        }
    }
    WALK_FAIL(node, "a completion of queue pair %u, which is not there", wc->qp_num);
}

// --- memory ----------------------------------------------------------------------------------------------------------

// true: a flushed request may have written this value.
static bool in_doubt(const struct walk_end *end, uint32_t at, uint8_t value)
{
    for (unsigned i = 0; i < end->doubts; i++) {
        const struct walk_request *request = &end->doubtful[i];
        if (at - request->at >= request->bytes) {
            continue;
        }
        if (is_write(request->opcode)) {
            uint8_t data[WALK_SLOT_BYTES];
            fixture_fill(data, at - request->at + 1, request->seed);
            if (data[at - request->at] == value) {
                return true;
            }
        } else if (request->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            return true;
        }
    }
    return false;
}

void walk_areas_check(struct walk_node *node)
{
    for (unsigned peer = 0; peer < node->walk->fixture->nodes; peer++) {
        struct walk_end *end = &node->ends[peer];
        const struct side *other = &node->walk->fixture->sides[peer];
        const uint8_t *area = other->memory + node->side->index * WALK_AREA_BYTES;
        for (uint32_t at = 0; at < WALK_AREA_BYTES && memcmp(area, end->model, WALK_AREA_BYTES) != 0; at++) {
            if (area[at] != end->model[at] && !in_doubt(end, at, area[at])) {
                WALK_FAIL(node, "node %u has %02x at %u of my area, not %02x", peer, area[at], at, end->model[at]);
                break;
            }
            end->model[at] = area[at];
        }
        end->doubts = 0;
    }
}
