// Random programs on two to four nodes, against a model of memory and completions.
//
// In each other's regions every node has an area of its own, which only its requests to that node touch. So what each
// request must do is known from those before it on its queue pair: the model applies them in the order of completions.
// A round ends when every request of every node has; then areas are compared with the model. Queue pairs that died in
// it, by errors that the walk made, are reset and connected anew.
//
// What a request that was flushed did to memory is not known (it may have been carried out, wholly or in part, IBA
// 10.8.6.3): there each byte is what it was or what the request would have made of it.
#pragma once

#include "fixture.h"
#include "sim/kernel/random.h"

// Layout of each region.
#define WALK_AREA_BYTES  81920u // of each requester
#define WALK_SLOT_BYTES  40960u
#define WALK_SLOTS       9u     // what requests take and bring
#define WALK_RECEIVES    2u     // of each queue pair
#define WALK_ROOM        36000u // of a receive
#define WALK_SLOTS_AT    (FIXTURE_NODES_MAX * WALK_AREA_BYTES)
#define WALK_RECEIVES_AT (WALK_SLOTS_AT + WALK_SLOTS * WALK_SLOT_BYTES)
#define WALK_MESSAGES    128u // of a queue pair in a round, at most
#define WALK_PIECES      4

struct walk_pieces {
    int count;
    uint32_t offset[WALK_PIECES], bytes[WALK_PIECES]; // in the slot
};

struct walk_request {
    uint64_t id;
    enum ibv_wr_opcode opcode;
    enum ibv_wc_status expected; // of its own; SUCCESS: nothing is wrong with it
    bool signaled, has_slot;
    uint32_t slot, at, bytes, seed; // at: in the area
    struct walk_pieces pieces;
    uint64_t compare_add, swap;
};

// What the receiver must see, in order.
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
    bool failed; // a request ended in error: those behind it are flushed
    bool silent; // in RESET by its own will
    bool guilty; // this end made an error in this round
    bool dead;   // as it said at the end of the round
    struct walk_receive receives[WALK_RECEIVES];
    unsigned receive_head, receive_count;
    bool receives_failed;
    struct walk_message messages[WALK_MESSAGES]; // that this end sent in this life of the connection
    unsigned sent, taken;                        // taken: of the peer's
    struct walk_request doubtful[FIXTURE_DEPTH]; // flushed in this round
    unsigned doubts;
    uint8_t *model; // of the area in the peer
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
    uint64_t requests, flushed, errors, messages; // that were walked
};

// Fails the test with the seed when something is not as the model says.
struct walk_plan {
    unsigned nodes, rounds, steps;
    bool harassed;
    uint64_t cut_ps; // 0: to its end
};
void walk_run(enum device device, uint64_t seed, const struct walk_plan *plan);

// --- walk_check.c: what completions and memory must be ---------------------------------------------------------------

void walk_complete(struct walk_node *node, const struct ibv_wc *wc);
void walk_areas_check(struct walk_node *node);
// The data of a request, or where a receive goes, between pieces of a slot and one run of bytes.
void walk_gather(const struct walk_pieces *pieces, const uint8_t *slot, uint8_t *data);
void walk_scatter(const struct walk_pieces *pieces, uint8_t *slot, const uint8_t *data);
// Something is wrong at this node.
#define WALK_FAIL(node_, ...) walk_fail((node_), __LINE__, __VA_ARGS__)
void walk_fail(const struct walk_node *node, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

// --- walk_post.c: what programs do -----------------------------------------------------------------------------------

void walk_post(struct walk_node *node, unsigned peer);
void walk_receives_post(struct walk_node *node, unsigned peer); // as many as there may be
void walk_hurt(struct walk_node *node, unsigned peer);          // an error of some kind
void walk_flush(struct walk_node *node, unsigned peer);         // a signaled request behind the others
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
