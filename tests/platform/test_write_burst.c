// A ring that is full of traffic while one of its cables is pulled: all channels of all boards send to all others, in
// register mode and by chains, with reads of the host's memory outstanding all the time.
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/random.h"
#include "sim/scenario/routes.h"
#include "tests/support/site.h"

#define NODES         6
#define CHANNELS      4
#define ROUNDS        5
#define MESSAGES      (NODES * CHANNELS * ROUNDS) // of all nodes
#define MESSAGE_BYTES 4096u
#define PIECES        8u // descriptors of a message
#define BASE          (8 * MIB)
#define WORDS         (32 * MIB)
#define PULLED        0 // node0.E to node1.W

struct burst {
    struct site site;
    struct backend_buffer sources[NODES];
    struct scn_routes *routes;
    struct plat_fault fault;
    bool arrived[MESSAGES]; // reported as complete
};

static uint32_t message_of(uint32_t node, unsigned channel, unsigned round)
{
    return (node * CHANNELS + channel) * ROUNDS + round;
}

static uint32_t target_of(uint32_t node, unsigned channel, unsigned round)
{
    return (node + 1 + (channel + round) % (NODES - 1)) % NODES;
}

static void message_prepare(struct burst *burst, peach2_handle_t *board, unsigned channel, unsigned round,
                            peach2_chain_t **chain_out)
{
    uint32_t node = peach2_node(board), target = target_of(node, channel, round);
    uint32_t message = message_of(node, channel, round);
    struct peach2_transfer transfers[PIECES];
    const struct peach2_notify notify = {
        .remote_address = peach2_window_address(board, target, WORDS + message * sizeof(uint64_t)), .value = message};
    unsigned pieces = channel == 0 ? 1 : PIECES;
    for (unsigned i = 0; i < pieces; i++) {
        uint32_t offset = i * MESSAGE_BYTES / pieces;
        transfers[i] = (struct peach2_transfer){
            .source = burst->sources[node].bus_address + (message % (CHANNELS * ROUNDS)) * MESSAGE_BYTES + offset,
            .destination = peach2_window_address(board, target, BASE + message * MESSAGE_BYTES + offset),
            .bytes = MESSAGE_BYTES / pieces};
    }
    *chain_out = NULL;
    if (channel == 0) {
        EXPECT_EQ(peach2_dma_prepare(board, channel, transfers, &notify), 0);
        return;
    }
    enum peach2_chain_memory where = channel % 2 == 0 ? PEACH2_CHAIN_HOST : PEACH2_CHAIN_BOARD;
    EXPECT_EQ(peach2_chain_create(board, where, channel * PIECES, transfers, pieces, chain_out), 0);
    EXPECT_EQ(peach2_chain_prepare(board, channel, *chain_out, &notify), 0);
}

static void burst_program(void *arg, peach2_handle_t *board)
{
    struct burst *burst = arg;
    uint32_t node = peach2_node(board);
    burst->sources[node] = site_pinned(board, CHANNELS * ROUNDS * MESSAGE_BYTES);
    for (uint32_t i = 0; i < CHANNELS * ROUNDS; i++) {
        uint32_t message = node * CHANNELS * ROUNDS + i;
        site_fill((uint8_t *)burst->sources[node].address + i * MESSAGE_BYTES, MESSAGE_BYTES, message);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        peach2_chain_t *chains[CHANNELS];
        for (unsigned channel = 0; channel < CHANNELS; channel++) {
            message_prepare(burst, board, channel, round, &chains[channel]);
            EXPECT_EQ(peach2_dma_start(board, channel), 0);
        }
        for (unsigned channel = 0; channel < CHANNELS; channel++) {
            unsigned error = 99;
            EXPECT_EQ(peach2_dma_wait(board, channel, &error), 0);
            peach2_chain_destroy(chains[channel]);
        }
    }
}

static bool passes_the_cable(const struct burst *burst, uint32_t node, uint32_t target)
{
    const struct scn_cable *cable = &burst->site.scenario->cables[PULLED];
    while (node != target) {
        enum scn_port port = (enum scn_port)scn_routes_port(burst->routes, node, target);
        if ((node == cable->from_node && port == cable->from_port) ||
            (node == cable->to_node && port == cable->to_port)) {
            return true;
        }
        node = scn_routes_neighbour(burst->routes, node, port, NULL);
    }
    return false;
}

static void message_check(struct burst *burst, uint32_t node, unsigned channel, unsigned round)
{
    uint32_t target = target_of(node, channel, round), message = message_of(node, channel, round);
    uint64_t word;
    memcpy(&word, site_memory(&burst->site, target, WORDS + message * sizeof word), sizeof word);
    burst->arrived[message] = word != 0;
    if (word != 0) {
        EXPECT_EQ((uint32_t)word, message);
        EXPECT_TRUE(
            site_is_filled(site_memory(&burst->site, target, BASE + message * MESSAGE_BYTES), MESSAGE_BYTES, message));
    } else if (!passes_the_cable(burst, node, target)) {
        FAIL("message %u from %u to %u got lost beside the cable", message, node, target);
    }
}

static void burst_run(struct burst *burst, enum scn_fidelity fidelity, uint32_t lanes, const struct scn_fault *fault)
{
    *burst = (struct burst){0};
    site_init(&burst->site, NODES);
    struct scn_scenario *scenario = burst->site.scenario;
    scenario->cables[scenario->cable_count++] =
        (struct scn_cable){NODES - 1, 0, SCN_PORT_E, SCN_PORT_W, scenario->cables[0].link};
    for (uint32_t i = 0; i < NODES; i++) {
        scenario->cables[i].link.lanes = lanes;
        scenario->nodes[i].board.fidelity = fidelity;
    }
    scenario->faults[scenario->fault_count] = *fault;
    scenario->faults[scenario->fault_count].ends.given = true;
    scenario->faults[scenario->fault_count++].for_ps = SCN_NOT_GIVEN;
    burst->routes = scn_routes_find(scenario);
    site_build(&burst->site);
    ASSERT_NOT_NULL(burst->site.machine);
    for (uint32_t i = 0; i < NODES; i++) {
        plat_machine_set_program(burst->site.machine, i, burst_program, burst);
    }
    EXPECT_EQ(plat_machine_run(burst->site.machine), SIM_RUN_DONE);
    EXPECT_EQ(plat_machine_live_packets(burst->site.machine), 0);
    burst->fault = plat_machine_fault(burst->site.machine, 0);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        message_check(burst, i / (CHANNELS * ROUNDS), i / ROUNDS % CHANNELS, i % ROUNDS);
    }
    scn_routes_free(burst->routes);
    site_fini(&burst->site);
}

static unsigned arrivals(const struct burst *burst)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        count += burst->arrived[i];
    }
    return count;
}

TEST(FullRing, LosesOnlyWhatPassesThePulledCable)
{
    struct sim_random random;
    unsigned least = MESSAGES, most = 0;
    sim_random_init(&random, 7, "pulls");
    for (unsigned i = 0; i < 60; i++) {
        struct scn_fault fault = {.cable = PULLED, .at_ps = SCN_NOT_GIVEN, .after_tlps = SCN_NOT_GIVEN};
        if (i % 2 == 0) {
            fault.after_tlps = sim_random_below(&random, 1000);
        } else {
            fault.at_ps = sim_random_below(&random, (i % 4 == 1 ? 70000 : 400000) * NS);
        }
        struct burst burst;
        burst_run(&burst, SCN_FIDELITY_TWIN, i % 4 < 2 ? 8 : 1, &fault); // with one lane the link's buffers are full
        least = arrivals(&burst) < least ? arrivals(&burst) : least;
        most = arrivals(&burst) > most ? arrivals(&burst) : most;
    }
    EXPECT_LT(least, most); // the pulls had different effects
}

TEST(FullRing, IsTheSameToTheRtlAndItsTwin)
{
    const struct scn_fault faults[] = {
        {.cable = PULLED, .at_ps = SCN_NOT_GIVEN, .after_tlps = 0},
        {.cable = PULLED, .at_ps = SCN_NOT_GIVEN, .after_tlps = 333},
        {.cable = PULLED, .at_ps = 23456 * NS, .after_tlps = SCN_NOT_GIVEN},
    };
    for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct burst rtl, twin;
        burst_run(&rtl, SCN_FIDELITY_RTL, i == 1 ? 1 : 8, &faults[i]);
        burst_run(&twin, SCN_FIDELITY_TWIN, i == 1 ? 1 : 8, &faults[i]);
        EXPECT_MEMEQ(twin.arrived, rtl.arrived, sizeof rtl.arrived);
        EXPECT_EQ(twin.fault.at_ps, rtl.fault.at_ps);
        for (unsigned side = 0; side < 2; side++) {
            EXPECT_EQ(twin.fault.ends[side].sent, rtl.fault.ends[side].sent);
            EXPECT_EQ(twin.fault.ends[side].lost, rtl.fault.ends[side].lost);
            EXPECT_EQ(twin.fault.ends[side].dropped, rtl.fault.ends[side].dropped);
        }
    }
}

// --- words that are never written again ------------------------------------------------------------------------------

static void send_for_ever(void *arg, peach2_handle_t *board)
{
    (void)arg;
    struct backend_buffer source = site_pinned(board, MESSAGE_BYTES);
    for (unsigned i = 0; i < 20; i++) {
        EXPECT_EQ(site_dma(board, 0, source.bus_address, peach2_window_address(board, 1, BASE), MESSAGE_BYTES),
                  PEACH2_DMA_OK);
    }
    const uint64_t word = 7;
    EXPECT_EQ(peach2_pio_write(board, peach2_window_address(board, 1, WORDS), &word, sizeof word), 0);
}

static void wait_for_the_last(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    const struct backend *backend = peach2_backend(board);
    volatile uint64_t *word = (volatile uint64_t *)(void *)site_memory(site, 1, WORDS);
    site->value[0] = (uint64_t)backend->ops->wait_word(backend->ctx, word, UINT64_MAX, 7, 0);
}

TEST(PulledCable, LeavesNoPacketWhereAProgramWaitsForEver)
{
    for (uint64_t tlps = 0; tlps < 320; tlps += 16) {
        struct site site;
        char waiters[1024];
        site_init(&site, 2);
        site.scenario->faults[0] = (struct scn_fault){
            .ends = {.given = true}, .at_ps = SCN_NOT_GIVEN, .after_tlps = tlps, .for_ps = SCN_NOT_GIVEN};
        site.scenario->fault_count = 1;
        site_build(&site);
        ASSERT_NOT_NULL(site.machine);
        plat_machine_set_program(site.machine, 0, send_for_ever, &site);
        plat_machine_set_program(site.machine, 1, wait_for_the_last, &site);
        EXPECT_EQ(plat_machine_run(site.machine), SIM_RUN_STUCK);
        (void)sim_describe_waiters(plat_machine_sim(site.machine), waiters, sizeof waiters);
        EXPECT_CONTAINS(waiters, "node1 waits for node1.memory: word 0x2000000 to become 0x7");
        EXPECT_EQ(plat_machine_live_packets(site.machine), 0);
        site_fini(&site);
    }
}
