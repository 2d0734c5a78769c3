// Rings that carry more than their buffers hold, in short and long packets: they keep moving.
#include "sim/kernel/random.h"
#include "tests/support/site.h"

enum { RING = 4, ROUNDS = 8, CHANNELS = 4, TRANSFERS = 200, LONG_BYTES = 512, ROWS = 16, ROW_BYTES = 4 };
#define BASE (8 * MIB)

struct sender {
    struct sim_random random;
    struct backend_buffer source, status;
    uint32_t node;
    struct peach2_transfer transfers[TRANSFERS];
};

// The largest packets, or rows of 4 B each, to the node on the other side of the ring.
static void transfers_make(struct sender *sender, peach2_handle_t *board, unsigned channel)
{
    for (unsigned i = 0; i < TRANSFERS; i++) {
        uint64_t at = (channel * (uint64_t)TRANSFERS + i) * LONG_BYTES;
        struct peach2_transfer *transfer = &sender->transfers[i];
        *transfer = (struct peach2_transfer){
            .source = sender->source.bus_address + at,
            .destination = peach2_window_address(board, (sender->node + RING / 2) % RING, BASE + at),
            .bytes = LONG_BYTES};
        if (sim_random_below(&sender->random, 2) != 0) {
            transfer->bytes = ROWS * ROW_BYTES;
            transfer->width = ROW_BYTES;
            transfer->source_pitch = transfer->destination_pitch = 16;
        }
    }
}

static void round_play(struct sender *sender, peach2_handle_t *board)
{
    volatile uint64_t *words = sender->status.address;
    peach2_chain_t *chains[CHANNELS];
    for (unsigned channel = 0; channel < CHANNELS; channel++) {
        const struct peach2_notify notify = {.local_address = sender->status.bus_address + 8 * channel, .value = 1};
        transfers_make(sender, board, channel);
        ASSERT_EQ(peach2_chain_create(board, PEACH2_CHAIN_HOST, 0, sender->transfers, TRANSFERS, &chains[channel]), 0);
        EXPECT_EQ(peach2_chain_prepare(board, channel, chains[channel], &notify), 0);
    }
    for (unsigned channel = 0; channel < CHANNELS; channel++) {
        EXPECT_EQ(peach2_dma_start(board, channel), 0);
    }
    for (unsigned channel = 0; channel < CHANNELS; channel++) {
        unsigned error = 99;
        uint32_t value = 0;
        EXPECT_EQ(peach2_wait_status(board, &words[channel], 0, &value, &error), 0);
        EXPECT_EQ(peach2_dma_wait(board, channel, &error), 0);
        EXPECT_EQ(error, 0);
        words[channel] = 0;
        peach2_chain_destroy(chains[channel]);
    }
}

static void send_through(void *arg, peach2_handle_t *board)
{
    struct sender *sender = arg;
    sender->source = site_pinned(board, CHANNELS * TRANSFERS * LONG_BYTES);
    sender->status = site_pinned(board, CHANNELS * sizeof(uint64_t));
    for (unsigned i = 0; i < ROUNDS; i++) {
        round_play(sender, board);
    }
}

static void ring_init(struct site *site)
{
    site_init(site, RING);
    struct scn_scenario *scenario = site->scenario;
    struct scn_cable *closing = &scenario->cables[scenario->cable_count++];
    *closing = scenario->cables[0];
    closing->from_node = RING - 1;
    closing->to_node = 0;
    for (unsigned i = 0; i < RING; i++) {
        scenario->nodes[i].board.fidelity = SCN_FIDELITY_TWIN;
        scenario->nodes[i].board.posted_data_credits = 64; // four of the largest packets
        scenario->nodes[i].board.posted_header_credits = 64;
    }
}

TEST(Rings, OfShortAndLongPacketsKeepMovingWhereDataCreditsAreFew)
{
    for (unsigned seed = 1; seed <= 3; seed++) {
        TEST_TRACE("seed %u", seed);
        struct site site;
        struct sender senders[RING] = {0};
        ring_init(&site);
        site_build(&site);
        for (uint32_t i = 0; i < RING; i++) {
            senders[i].node = i;
            sim_random_init(&senders[i].random, seed, site.scenario->nodes[i].name);
            plat_machine_set_program(site.machine, i, send_through, &senders[i]);
        }
        EXPECT_EQ(plat_machine_run(site.machine), SIM_RUN_DONE);
        EXPECT_EQ(plat_machine_live_packets(site.machine), 0);
        site_fini(&site);
    }
}
