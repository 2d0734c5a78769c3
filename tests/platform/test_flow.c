// Boards of fidelity flow against twins: the same bytes, errors and words, nearly the same time; and streams over cables
// that are pulled at any moment.
#include <string.h>

#include "sim/kernel/random.h"
#include "tests/support/site.h"

enum { NODES = 3, TRANSFERS = 24, AREA = 2 << 20, LONGEST = 64 << 10, SEEDS = 12, PULLS = 60 };
#define BASE    (16 * MIB)
#define PULL_PS 3377777ull

struct sender {
    struct sim_random random;
    struct backend_buffer source, status;
    struct peach2_transfer transfers[TRANSFERS];
    uint64_t offsets[TRANSFERS]; // of their targets from BASE on; they do not overlap
    uint64_t took_ps;
    unsigned error;
};

// Short and long transfers, some of them with pitch, behind others, or to other lanes of a line.
static void transfers_make(struct sender *sender, peach2_handle_t *board)
{
    uint64_t at = 0;
    for (unsigned i = 0; i < TRANSFERS; i++) {
        struct peach2_transfer *transfer = &sender->transfers[i];
        bool is_long = sim_random_below(&sender->random, 2) != 0;
        uint32_t bytes = 4 + 4 * (uint32_t)sim_random_below(&sender->random, (is_long ? LONGEST : 1024) / 4);
        uint64_t lane = 4 * sim_random_below(&sender->random, 4);
        uint64_t source = 512 * sim_random_below(&sender->random, (AREA - LONGEST - 64) / 512) + lane;
        sender->offsets[i] = at + lane;
        *transfer =
            (struct peach2_transfer){.source = sender->source.bus_address + source,
                                     .destination = peach2_window_address(board, NODES - 1, BASE + at + lane),
                                     .bytes = bytes,
                                     .flags = sim_random_below(&sender->random, 4) == 0 ? PEACH2_TRANSFER_FENCE : 0};
        at += (bytes + 128ull) & ~63ull;
    }
}

static void send_chain(void *arg, peach2_handle_t *board)
{
    struct sender *sender = arg;
    const struct backend *backend = peach2_backend(board);
    sender->source = site_pinned(board, AREA);
    sender->status = site_pinned(board, sizeof(uint64_t));
    site_fill(sender->source.address, AREA, 7);
    transfers_make(sender, board);
    const struct peach2_notify notify = {.local_address = sender->status.bus_address, .value = 5};
    peach2_chain_t *chain;
    ASSERT_EQ(peach2_chain_create(board, PEACH2_CHAIN_HOST, 0, sender->transfers, TRANSFERS, &chain), 0);
    EXPECT_EQ(peach2_chain_prepare(board, 1, chain, &notify), 0);
    uint64_t begun_ps = backend->ops->time_ps(backend->ctx);
    EXPECT_EQ(peach2_dma_start(board, 1), 0);
    uint32_t value = 0;
    EXPECT_EQ(peach2_wait_status(board, sender->status.address, 0, &value, &sender->error), 0);
    sender->took_ps = backend->ops->time_ps(backend->ctx) - begun_ps;
    peach2_chain_destroy(chain);
}

static void build(struct site *site, struct sender *sender, unsigned seed, enum scn_fidelity fidelity,
                  uint64_t pulled_ps)
{
    site_init(site, NODES);
    *sender = (struct sender){0};
    for (unsigned i = 0; i < NODES; i++) {
        site->scenario->nodes[i].board.fidelity = fidelity;
    }
    if (pulled_ps != 0) {
        site->scenario->faults[site->scenario->fault_count++] =
            (struct scn_fault){.ends = {.given = true}, .cable = seed % 2, .at_ps = pulled_ps, .for_ps = SCN_NOT_GIVEN};
    }
    site_build(site);
    sim_random_init(&sender->random, seed, "sender");
    plat_machine_set_program(site->machine, 0, send_chain, sender);
}

static uint64_t wrong_bytes(const struct site *site, const struct sender *sender, bool may_be_missing)
{
    uint64_t wrong = 0;
    for (unsigned i = 0; i < TRANSFERS; i++) {
        const struct peach2_transfer *transfer = &sender->transfers[i];
        const uint8_t *to = site_memory(site, NODES - 1, BASE + sender->offsets[i]);
        const uint8_t *from = (const uint8_t *)sender->source.address + (transfer->source - sender->source.bus_address);
        for (uint64_t k = 0; k < transfer->bytes; k++) {
            wrong += to[k] != from[k] && !(may_be_missing && to[k] == 0);
        }
        wrong += to[transfer->bytes] != 0; // between two targets
    }
    return wrong;
}

TEST(Flow, ChainsMoveTheSameBytesInNearlyTheSameTime)
{
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        TEST_TRACE("seed %u", seed);
        uint64_t took_ps[2];
        for (unsigned flow = 0; flow < 2; flow++) {
            struct site site;
            struct sender sender;
            build(&site, &sender, seed, flow != 0 ? SCN_FIDELITY_FLOW : SCN_FIDELITY_TWIN, 0);
            EXPECT_EQ(plat_machine_run(site.machine), SIM_RUN_DONE);
            EXPECT_EQ(plat_machine_live_packets(site.machine), 0);
            EXPECT_EQ(sender.error, 0);
            EXPECT_EQ(wrong_bytes(&site, &sender, false), 0);
            took_ps[flow] = sender.took_ps;
            site_fini(&site);
        }
        EXPECT_BETWEEN((double)took_ps[1], 0.97 * (double)took_ps[0], 1.03 * (double)took_ps[0]);
    }
}

TEST(Flow, AStreamOverACableThatIsPulledLosesOnlyWhatComesAfter)
{
    for (unsigned i = 0; i < PULLS; i++) {
        TEST_TRACE("pull %u", i);
        struct site site;
        struct sender sender;
        build(&site, &sender, i, SCN_FIDELITY_FLOW, 1000000 + i * PULL_PS);
        EXPECT_EQ(plat_machine_run(site.machine), SIM_RUN_DONE);
        EXPECT_EQ(plat_machine_live_packets(site.machine), 0);
        EXPECT_EQ(sender.error, 0); // the board does not see that writes are lost
        EXPECT_EQ(wrong_bytes(&site, &sender, true), 0);
        site_fini(&site);
    }
}
