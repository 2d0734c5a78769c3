// Random sizes, offsets, methods and interleavings: every byte arrives at its destination, and no other byte changes.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/random.h"
#include "tests/support/site.h"

#define BASE     (8 * MIB)
#define ARENA    (256u << 10)
#define GUARD    0x5c
#define CHANNELS 4

struct shuffle {
    struct site site;
    struct sim_random random;
    struct backend_buffer source;
    uint8_t *expected; // expected contents of the target
    uint32_t next;     // offset of the first unused byte of the target
    unsigned rounds;
};

// A transfer to unused memory of the target, after a gap; the low four address bits are those of the source.
static struct peach2_transfer next_transfer(struct shuffle *s, peach2_handle_t *board, uint32_t bytes_max)
{
    uint32_t bytes = 4 * (1 + (uint32_t)sim_random_below(&s->random, bytes_max / 4));
    uint32_t from = 4 * (uint32_t)sim_random_below(&s->random, (ARENA - bytes) / 4);
    uint32_t to = s->next + 16 * (uint32_t)sim_random_below(&s->random, 8);
    to = (to + 15) / 16 * 16 + from % 16;
    s->next = to + bytes;
    memcpy(s->expected + to, (uint8_t *)s->source.address + from, bytes);
    return (struct peach2_transfer){.source = s->source.bus_address + from,
                                    .destination = peach2_window_address(board, 1, BASE + to),
                                    .bytes = bytes};
}

static void wait_good(peach2_handle_t *board, unsigned channel)
{
    unsigned error = 99;
    EXPECT_EQ(peach2_dma_wait(board, channel, &error), 0);
}

static void round_by_registers(struct shuffle *s, peach2_handle_t *board)
{
    for (unsigned channel = 0; channel < CHANNELS; channel++) {
        struct peach2_transfer transfer = next_transfer(s, board, 3000);
        EXPECT_EQ(peach2_dma_prepare(board, channel, &transfer, NULL), 0);
    }
    for (unsigned channel = 0; channel < CHANNELS; channel++) {
        EXPECT_EQ(peach2_dma_start(board, channel), 0);
    }
}

static void round_by_chains(struct shuffle *s, peach2_handle_t *board, peach2_chain_t *chains[CHANNELS])
{
    for (unsigned channel = 0; channel < CHANNELS; channel++) {
        struct peach2_transfer transfers[12];
        uint32_t count = 1 + (uint32_t)sim_random_below(&s->random, 12);
        for (uint32_t i = 0; i < count; i++) {
            transfers[i] = next_transfer(s, board, 700);
        }
        enum peach2_chain_memory where = channel % 2 == 0 ? PEACH2_CHAIN_HOST : PEACH2_CHAIN_BOARD;
        EXPECT_EQ(peach2_chain_create(board, where, 100 * channel, transfers, count, &chains[channel]), 0);
        EXPECT_EQ(peach2_chain_prepare(board, channel, chains[channel], NULL), 0);
    }
    for (unsigned channel = 0; channel < CHANNELS; channel++) {
        EXPECT_EQ(peach2_dma_start(board, channel), 0);
    }
}

// The processor stores while the channels run.
static void round_by_stores(struct shuffle *s, peach2_handle_t *board)
{
    for (unsigned i = 0; i < 6; i++) {
        uint8_t data[300];
        uint32_t bytes = 1 + (uint32_t)sim_random_below(&s->random, sizeof data);
        uint32_t to = s->next + (uint32_t)sim_random_below(&s->random, 70);
        for (uint32_t k = 0; k < bytes; k++) {
            data[k] = (uint8_t)sim_random_u64(&s->random);
        }
        s->next = to + bytes;
        memcpy(s->expected + to, data, bytes);
        EXPECT_EQ(peach2_pio_write(board, peach2_window_address(board, 1, BASE + to), data, bytes), 0);
    }
}

static void shuffle_program(void *arg, peach2_handle_t *board)
{
    struct shuffle *s = arg;
    s->source = site_pinned(board, ARENA);
    site_fill(s->source.address, ARENA, 5);
    for (unsigned i = 0; i < s->rounds; i++) {
        peach2_chain_t *chains[CHANNELS] = {0};
        if (sim_random_below(&s->random, 2) == 0) {
            round_by_registers(s, board);
        } else {
            round_by_chains(s, board, chains);
        }
        round_by_stores(s, board);
        for (unsigned channel = 0; channel < CHANNELS; channel++) {
            wait_good(board, channel);
            peach2_chain_destroy(chains[channel]);
        }
    }
    EXPECT_TRUE(site_is_filled(s->source.address, ARENA, 5));
}

static void shuffle_run(uint64_t seed, unsigned rounds, void (*change)(struct scn_scenario *scenario))
{
    struct shuffle s = {.rounds = rounds, .expected = malloc(2 * MIB)};
    ASSERT_NOT_NULL(s.expected);
    memset(s.expected, GUARD, 2 * MIB);
    sim_random_init(&s.random, seed, "shuffle");
    site_init(&s.site, 2);
    if (change != NULL) {
        change(s.site.scenario);
    }
    site_build(&s.site);
    memset(site_memory(&s.site, 1, BASE), GUARD, 2 * MIB);
    plat_machine_set_program(s.site.machine, 0, shuffle_program, &s);
    EXPECT_EQ(plat_machine_run(s.site.machine), SIM_RUN_DONE);
    EXPECT_EQ(plat_machine_live_packets(s.site.machine), 0);
    EXPECT_LT(s.next + 4096, 2 * MIB);
    EXPECT_MEMEQ(site_memory(&s.site, 1, BASE), s.expected, 2 * MIB);
    site_fini(&s.site);
    free(s.expected);
}

TEST(Integrity, HoldsForFourChannelsAndStoresAtOnce)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        shuffle_run(seed, 12, NULL);
    }
}

static void make_narrow(struct scn_scenario *scenario)
{
    scenario->nodes[0].host.mps_bytes = 128;
    scenario->nodes[1].host.posted_header_credits = 2;
    scenario->nodes[1].host.posted_data_credits = 32;
    scenario->nodes[1].board.posted_header_credits = 3;
    scenario->nodes[1].board.posted_data_credits = 48;
    scenario->nodes[0].board.tx_buffer_tlps = 5;
    scenario->nodes[1].board.tx_buffer_tlps = 5;
    scenario->cables[0].link.lanes = 1;
}

TEST(Integrity, HoldsWhereEveryBufferIsScarce)
{
    shuffle_run(11, 8, make_narrow);
}

static void make_faulty(struct scn_scenario *scenario)
{
    scenario->nodes[0].slot.corrupt_every_tlps = 7;
    scenario->nodes[1].slot.corrupt_every_tlps = 5;
    scenario->cables[0].link.corrupt_every_tlps = 11;
}

TEST(Integrity, HoldsWhileLinksCorruptPackets)
{
    shuffle_run(21, 6, make_faulty);
}

static void make_small_reads(struct scn_scenario *scenario)
{
    scenario->nodes[0].board.dmac_read_bytes = 64;
    scenario->nodes[0].board.dmac_read_tags = 3;
    scenario->nodes[0].board.dmac_prefetch = 1;
}

TEST(Integrity, HoldsWithSmallReadsAndFewTags)
{
    shuffle_run(31, 6, make_small_reads);
}
