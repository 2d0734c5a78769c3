// Random walks with a fixed set of seeds; TCASIM_WALK_SEEDS=first-last uses others instead.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

static struct walk *walk_now;

// --- one node's program ----------------------------------------------------------------------------------------------

static void poll_some(struct walk_node *node)
{
    struct ibv_wc wc[8];
    int count = ibv_poll_cq(node->side->cq, 1 + (int)walk_draw(node, 8), wc);
    for (int i = 0; i < count; i++) {
        walk_complete(node, &wc[i]);
    }
}

static void step(struct walk_node *node)
{
    unsigned peer = walk_draw(node, node->walk->fixture->nodes), what = walk_draw(node, 100);
    if (what < 60) {
        walk_post(node, peer);
    } else if (what < 62 && node->storm) {
        walk_hurt(node, peer);
    } else if (what < 66) {
        fixture_sleep(node->side, walk_draw(node, 20) * US);
    } else {
        poll_some(node);
    }
}

static bool is_drained(const struct walk_node *node)
{
    for (unsigned peer = 0; peer < node->walk->fixture->nodes; peer++) {
        if (node->ends[peer].count != 0) {
            return false;
        }
    }
    return true;
}

static bool all_drained(const struct walk *walk)
{
    for (unsigned i = 0; i < walk->fixture->nodes; i++) {
        if (!walk->nodes[i].drained) {
            return false;
        }
    }
    return true;
}

// Runs until all requests have ended.
static void drain(struct walk_node *node)
{
    const uint64_t timeout_ps = 2000000 * US;
    uint64_t start_ps = fixture_now_ps(node->side);
    for (unsigned peer = 0; peer < node->walk->fixture->nodes; peer++) {
        walk_flush(node, peer);
    }
    while (!all_drained(node->walk) && fixture_now_ps(node->side) - start_ps < timeout_ps) {
        poll_some(node);
        node->drained = is_drained(node);
        fixture_sleep(node->side, US / 2);
    }
    for (unsigned peer = 0; peer < node->walk->fixture->nodes; peer++) {
        const struct walk_end *end = &node->ends[peer];
        if (end->count != 0) {
            WALK_FAIL(node, "%u requests to node %u do not end, first %llu of opcode %d, %u B, in state %d", end->count,
                      peer, (unsigned long long)end->requests[end->head % FIXTURE_DEPTH].id,
                      (int)end->requests[end->head % FIXTURE_DEPTH].opcode,
                      end->requests[end->head % FIXTURE_DEPTH].bytes, (int)fixture_state(node->side->qps[peer]));
        }
    }
    for (unsigned i = 0; i < 40; i++) {
        poll_some(node);
        fixture_sleep(node->side, US);
    }
}

static void events_drain(struct walk_node *node)
{
    struct ibv_async_event event;
    int flags = fcntl(node->side->context->async_fd, F_GETFL);
    (void)fcntl(node->side->context->async_fd, F_SETFL, flags | O_NONBLOCK);
    while (ibv_get_async_event(node->side->context, &event) == 0) {
        ibv_ack_async_event(&event);
    }
    (void)fcntl(node->side->context->async_fd, F_SETFL, flags);
}

// --- rounds ----------------------------------------------------------------------------------------------------------

static void end_renew(struct walk_node *node, unsigned peer)
{
    struct walk_end *end = &node->ends[peer];
    uint8_t *model = end->model;
    unsigned doubts = end->doubts;
    EXPECT_EQ(doubts, 0);
    *end = (struct walk_end){.model = model, .serial = end->serial, .receive_serial = end->receive_serial};
}

// Packet numbers and MTU of a new connection, the same on both sides.
static void connect(struct walk_node *node, unsigned peer)
{
    struct walk *walk = node->walk;
    unsigned own = node->side->index;
    node->side->attr.sq_psn = (walk->epoch * 7919 + own * 104729 + peer * 1299709 - 20) & 0xffffff;
    node->side->attr.rq_psn = (walk->epoch * 7919 + peer * 104729 + own * 1299709 - 20) & 0xffffff;
    node->side->attr.path_mtu = (enum ibv_mtu)(IBV_MTU_256 + (walk->epoch + own + peer) % 4);
    EXPECT_EQ(fixture_modify(node->side, node->side->qps[peer], IBV_QPS_RESET, node->side, 0), 0);
    const struct side *other = &walk->fixture->sides[peer];
    fixture_connect(node->side, node->side->qps[peer], other, other->qps[own]->qp_num);
}

static bool is_dead(const struct walk_node *node, unsigned peer)
{
    return node->ends[peer].dead || node->walk->nodes[peer].ends[node->side->index].dead;
}

// Resets and reconnects failed connections on both sides.
static void revive(struct walk_node *node)
{
    unsigned nodes = node->walk->fixture->nodes;
    for (unsigned peer = 0; peer < nodes; peer++) {
        struct walk_end *end = &node->ends[peer];
        end->dead = fixture_state(node->side->qps[peer]) != IBV_QPS_RTS;
        if (end->dead && !end->guilty && !node->walk->nodes[peer].ends[node->side->index].guilty) {
            WALK_FAIL(node, "the connection with node %u died", peer);
        }
    }
    fixture_barrier(node->side);
    node->walk->epoch += node->side->index == 0;
    bool dead[FIXTURE_NODES_MAX];
    for (unsigned peer = 0; peer < nodes; peer++) {
        dead[peer] = is_dead(node, peer);
        if (dead[peer]) {
            EXPECT_EQ(fixture_modify(node->side, node->side->qps[peer], IBV_QPS_RESET, node->side, 0), 0);
        }
    }
    fixture_barrier(node->side);
    for (unsigned peer = 0; peer < nodes; peer++) {
        if (dead[peer]) {
            end_renew(node, peer);
            connect(node, peer);
        } else {
            node->ends[peer].sent = node->ends[peer].taken = 0;
        }
        walk_receives_post(node, peer);
        node->ends[peer].guilty = false;
    }
    events_drain(node);
    fixture_barrier(node->side);
}

static void walk_program(struct side *side)
{
    struct walk *walk = walk_now;
    struct walk_node *node = &walk->nodes[side->index];
    node->side = side;
    memset(side->memory, 0, FIXTURE_BYTES);
    for (unsigned peer = 0; peer < walk->fixture->nodes; peer++) {
        walk_receives_post(node, peer);
    }
    fixture_barrier(side);
    for (unsigned round = 0; round < walk->rounds; round++) {
        node->storm = walk_draw(node, 2) == 0;
        node->drained = false;
        fixture_barrier(side);
        for (unsigned i = 0; i < walk->steps; i++) {
            step(node);
        }
        drain(node);
        fixture_barrier(side);
        walk_areas_check(node);
        fixture_barrier(side);
        revive(node);
    }
}

// --- walks -----------------------------------------------------------------------------------------------------------

static struct fixture *fixture_make(enum device device, const struct walk *walk, const struct walk_plan *plan)
{
    struct fixture *fixture = fixture_new(device);
    fixture->nodes = plan->nodes;
    fixture->all_qps = true;
    fixture->cq_entries = 256;
    fixture->pageable = walk->seed % 2 == 0;
    fixture->attr.timeout = 8;
    fixture->attr.retry_cnt = plan->harassed ? 7 : 3;
    fixture->attr.min_rnr_timer = 1;
    fixture->seed = walk->seed;
    fixture->harass_ps = plan->harassed ? 4 * US : 0;
    fixture->loss_every = plan->harassed ? 60 + (unsigned)(walk->seed % 50) : 0;
    fixture->cut_ps = plan->cut_ps;
    return fixture;
}

static void nodes_init(struct walk *walk)
{
    for (unsigned i = 0; i < walk->fixture->nodes; i++) {
        char name[16];
        snprintf(name, sizeof name, "node%u", i);
        walk->nodes[i].walk = walk;
        sim_random_init(&walk->nodes[i].random, walk->seed, name);
        for (unsigned peer = 0; peer < walk->fixture->nodes; peer++) {
            walk->nodes[i].ends[peer].model = calloc(1, WALK_AREA_BYTES);
        }
    }
}

void walk_run(enum device device, uint64_t seed, const struct walk_plan *plan)
{
    struct walk *walk = calloc(1, sizeof *walk);
    *walk = (struct walk){.seed = seed, .rounds = plan->rounds, .steps = plan->steps};
    walk->fixture = fixture_make(device, walk, plan);
    nodes_init(walk);
    walk_now = walk;
    fixture_run(walk->fixture, walk_program, walk_program);
    fixture_end(walk->fixture);
    if (plan->cut_ps == 0) {
        EXPECT_GT(walk->requests, plan->rounds * plan->nodes);
        EXPECT_GT(walk->messages, plan->rounds);
    }
    for (unsigned i = 0; i < plan->nodes * plan->nodes; i++) {
        free(walk->nodes[i / plan->nodes].ends[i % plan->nodes].model);
    }
    free(walk);
}

static void seeds_walk(enum device device, struct walk_plan plan)
{
    unsigned first = 1, last = device == ON_TCA0 ? 2 : 6; // its library polls: each walk takes a second of real time
    const char *range = getenv("TCASIM_WALK_SEEDS");
    if (range != NULL) {
        ASSERT_EQ(sscanf(range, "%u-%u", &first, &last), 2);
    }
    plan.rounds = 6;
    plan.steps = 60;
    for (unsigned seed = first; seed <= last; seed++) {
        walk_run(device, seed, &plan);
    }
}

RULE(Walk, RandomProgramsOfTwoNodesDoWhatTheModelSays)
{
    seeds_walk(device, (struct walk_plan){.nodes = 2});
}

RULE(Walk, RandomProgramsOfThreeNodesDoWhatTheModelSays)
{
    seeds_walk(device, (struct walk_plan){.nodes = 3});
}

RULE(Walk, RandomProgramsOfFourNodesDoWhatTheModelSays)
{
    seeds_walk(device, (struct walk_plan){.nodes = 4});
}

TIMED_RULE(Walk, RandomProgramsSurviveAFabricThatLosesAndDamages)
{
    seeds_walk(device, (struct walk_plan){.nodes = 3, .harassed = true});
}

static void seeds_walk_cut(enum device device, unsigned seed)
{
    const struct walk_plan plan = {.nodes = 2, .rounds = 100, .steps = 60, .cut_ps = (20 + seed * 37) * US};
    walk_run(device, seed, &plan);
}

// Ends with outstanding requests: the sanitizers find leaks, machine_destroy finds objects that are left.
RULE(Walk, RandomProgramsMayEndAnywhere)
{
    for (unsigned seed = 1; seed <= 12; seed++) {
        seeds_walk_cut(device, seed);
    }
}
