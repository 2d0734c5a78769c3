// Random programs on two to four nodes, against a model of memory and completions.
//
// In the regions of each other node every node has an area of its own, which only its requests to that node use. So the
// result of each request follows from the earlier ones on its queue pair: the model applies them in the order of
// completions. A round ends when all requests of all nodes have ended; then areas are compared with the model. Queue
// pairs that failed in the round, by errors that the walk made, are reset and connected again.
//
// The effect of a flushed request on memory is unknown (it may have been executed, wholly or in part, IBA 10.8.6.3):
// each of its bytes has either the old value or the value of the request.
#pragma once

#include "fixture.h"
#include "sim/kernel/random.h"

// Layout of each region.
#define WALK_AREA_BYTES  81920u // of each requester
#define WALK_SLOT_BYTES  40960u
#define WALK_SLOTS       9u     // sources and targets of requests
#define WALK_RECEIVES    2u     // for each queue pair
#define WALK_ROOM        36000u // bytes of a receive
#define WALK_SLOTS_AT    (FIXTURE_NODES_MAX * WALK_AREA_BYTES)
#define WALK_RECEIVES_AT (WALK_SLOTS_AT + WALK_SLOTS * WALK_SLOT_BYTES)
#define WALK_MESSAGES    128u // maximum for a queue pair in a round
#define WALK_PIECES      4

struct walk_pieces {
    int count;
    uint32_t offset[WALK_PIECES], bytes[WALK_PIECES]; // position in the slot
};

struct walk_request {
    uint64_t id;
    enum ibv_wr_opcode opcode;
    enum ibv_wc_status expected; // of its own; SUCCESS: the request is correct
    bool signaled, has_slot;
    uint32_t slot, at, bytes, seed; // at: in the area
    struct walk_pieces pieces;
    uint64_t compare_add, swap;
};

// The messages that the receiver must see, in order.
struct walk_message {
    enum ibv_wr_opcode opcode;
    uint32_t bytes, seed, immediate;
};

struct walk_receive {
    uint64_t id;
    bool bad;
    struct walk_pieces pieces;
};

// A node's end of a connection.
struct walk_end {
    struct walk_request requests[FIXTURE_DEPTH];
    unsigned head, count;
    uint64_t serial, receive_serial;
    bool failed; // a request ended in error: later ones are flushed
    bool silent; // it went to RESET itself
    bool guilty; // this end made an error in this round
    bool dead;   // its state at the end of the round
    struct walk_receive receives[WALK_RECEIVES];
    unsigned receive_head, receive_count;
    bool receives_failed;
    struct walk_message messages[WALK_MESSAGES]; // sent by this end since the connection was made
    unsigned sent, taken;                        // taken: from the peer
    struct walk_request doubtful[FIXTURE_DEPTH]; // flushed in this round
    unsigned doubts;
    uint8_t *model; // of its area in the peer's region
};

struct walk_node {
    struct walk *walk;
    struct side *side;
    struct sim_random random;
    struct walk_end ends[FIXTURE_NODES_MAX];
    bool slots[WALK_SLOTS];
    bool drained, storm;
};

struct walk {
    struct fixture *fixture;
    uint64_t seed;
    unsigned rounds, steps, epoch;
    struct walk_node nodes[FIXTURE_NODES_MAX];
    uint64_t requests, flushed, errors, messages; // totals of all walks
};

// Fails the test and prints the seed if a result differs from the model.
struct walk_plan {
    unsigned nodes, rounds, steps;
    bool harassed;
    uint64_t cut_ps; // 0: run to the end
};
void walk_run(enum device device, uint64_t seed, const struct walk_plan *plan);

// --- walk_check.c: checks of completions and memory ------------------------------------------------------------------

void walk_complete(struct walk_node *node, const struct ibv_wc *wc);
void walk_areas_check(struct walk_node *node);
// Copies the data of a request, or of a receive, between pieces of a slot and one run of bytes.
void walk_gather(const struct walk_pieces *pieces, const uint8_t *slot, uint8_t *data);
void walk_scatter(const struct walk_pieces *pieces, uint8_t *slot, const uint8_t *data);
// Reports a wrong result at this node.
#define WALK_FAIL(node_, ...) walk_fail((node_), __LINE__, __VA_ARGS__)
void walk_fail(const struct walk_node *node, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

// --- walk_post.c: requests of the programs ---------------------------------------------------------------------------

void walk_post(struct walk_node *node, unsigned peer);
void walk_receives_post(struct walk_node *node, unsigned peer); // as many as the limit allows
void walk_hurt(struct walk_node *node, unsigned peer);          // posts an erroneous request
void walk_flush(struct walk_node *node, unsigned peer);         // a signalled request after the others
static inline uint32_t walk_draw(struct walk_node *node, uint32_t bound)
{
    return (uint32_t)sim_random_below(&node->random, bound);
}
static inline uint8_t *walk_slot(const struct walk_node *node, uint32_t slot)
{
    return node->side->memory + WALK_SLOTS_AT + slot * WALK_SLOT_BYTES;
}
static inline uint32_t walk_receive_at(unsigned peer, uint64_t serial)
{
    return WALK_RECEIVES_AT + (peer * WALK_RECEIVES + (uint32_t)(serial % WALK_RECEIVES)) * WALK_SLOT_BYTES;
}
#define WALK_RECEIVE_ID (1ull << 63)
