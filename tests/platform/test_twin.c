// Twin against RTL: the same random programs on both leave the same memory, status words and counters, errors included,
// at the same times.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rtl/peach2_regs.h"
#include "sim/kernel/random.h"
#include "tests/support/site.h"

#define NODES        3
#define CHANNELS     4
#define BASE         (8 * MIB)
#define AREA         (64u << 10) // of a channel of a node, in the memory of each node
#define ARENA        (NODES * CHANNELS * AREA)
#define FLAGS        (BASE + ARENA)
#define BOARD_BASE   0x4000u // of data in a board's memory, after the chains
#define BOARD_AREA   0x400u
#define SOURCE_BYTES (64u << 10)
#define HOLE         0x100000000ull // above the memory, below BAR 0
#define CHAIN_MAX    12
#define WORDS_MAX    4096

struct record {
    uint64_t words[WORDS_MAX]; // values that programs read
    unsigned count;
    uint64_t end_ps;
    uint8_t *arenas[NODES];
};

struct play;

struct player {
    struct play *play;
    uint32_t node;
    struct sim_random random;
    struct backend_buffer source, status;
    peach2_chain_t *chains[CHANNELS];
    uint64_t words[WORDS_MAX / NODES];
    unsigned count;
};

struct play {
    struct site site;
    struct player players[NODES];
    unsigned rounds;
    unsigned mistakes_in; // one of this many transfers is wrong; 0: none
};

static uint32_t dice(struct player *player, uint32_t sides)
{
    return (uint32_t)sim_random_below(&player->random, sides);
}

static void note(struct player *player, uint64_t word)
{
    ASSERT_LT(player->count, WORDS_MAX / NODES);
    player->words[player->count++] = word;
}

static void note_register(struct player *player, peach2_handle_t *board, uint32_t offset)
{
    uint64_t value = 0;
    EXPECT_EQ(peach2_register_read(board, offset, 4, &value), 0);
    note(player, value);
}

// --- random transfers -----------------------------------------------------------------------------------------------

static uint64_t area_of(const struct player *player, unsigned channel)
{
    return (player->node * CHANNELS + channel) * (uint64_t)AREA;
}

// An address in the memory or board of a random node, in this channel's area.
static uint64_t target(struct player *player, peach2_handle_t *board, unsigned channel, uint32_t offset)
{
    uint32_t node = dice(player, NODES);
    if (dice(player, 6) == 0) {
        uint32_t area = BOARD_BASE + (player->node * CHANNELS + channel) * BOARD_AREA;
        return peach2_board_memory_address(board, node, area + offset % 16);
    }
    if (node == player->node && dice(player, 2) == 0) {
        return BASE + area_of(player, channel) + offset;
    }
    return peach2_window_address(board, node, BASE + area_of(player, channel) + offset);
}

static void make_wrong(struct player *player, struct peach2_transfer *transfer)
{
    switch (dice(player, 6)) {
    case 0:
        transfer->bytes = 0;
        break;
    case 1:
        transfer->source += 2;
        break;
    case 2:
        transfer->destination += 4;
        break;
    case 3:
        transfer->source = HOLE + transfer->source % 16;
        break;
    case 4:
        transfer->destination = 0x8000000000ull + (9ull << 35) + transfer->source % 16;
        break;
    default:
        transfer->source = 0x8000000000ull + (((player->node + 1ull) % NODES) << 35) + transfer->source % 16;
        break;
    }
}

static struct peach2_transfer transfer_make(struct player *player, peach2_handle_t *board, unsigned channel,
                                            bool chained)
{
    uint32_t from = 4 * dice(player, SOURCE_BYTES / 8), offset = 16 * dice(player, 1024) + from % 16;
    struct peach2_transfer transfer = {.source = player->source.bus_address + from,
                                       .bytes = 4 * (1 + dice(player, 300))};
    if (dice(player, 4) == 0) {
        transfer.bytes *= 8;
    }
    transfer.destination = target(player, board, channel, offset);
    if (chained && dice(player, 3) == 0) {
        transfer.flags = dice(player, 4);
    }
    bool to_board = (transfer.destination >> 33 & 3) == 3 && transfer.destination >= 0x8000000000ull;
    if (to_board) {
        transfer.bytes = 4 * (1 + dice(player, 128));
    } else if (dice(player, 3) == 0) {
        transfer.width = 4 * (1 + dice(player, 100));
        transfer.source_pitch = transfer.width + 4 * dice(player, 8);
        transfer.destination_pitch = transfer.source_pitch + 16 * dice(player, 3);
        transfer.bytes = transfer.bytes > 3000 ? 3000 : transfer.bytes;
    }
    if (player->play->mistakes_in != 0 && dice(player, player->play->mistakes_in) == 0) {
        make_wrong(player, &transfer);
    }
    return transfer;
}

// --- a round --------------------------------------------------------------------------------------------------------

static volatile uint64_t *status_word(struct player *player, unsigned channel)
{
    return (volatile uint64_t *)player->status.address + channel;
}

static void channel_prepare(struct player *player, peach2_handle_t *board, unsigned channel)
{
    struct peach2_transfer transfers[CHAIN_MAX];
    struct peach2_notify notify = {.local_address = player->status.bus_address + 8 * channel,
                                   .value = dice(player, 99)};
    if (dice(player, 2) == 0) {
        uint64_t address = FLAGS + 256 + 8 * (player->node * CHANNELS + channel);
        notify.remote_address = peach2_window_address(board, dice(player, NODES), address);
    }
    unsigned kind = dice(player, 3);
    uint32_t count = kind == 0 ? 1 : 1 + dice(player, CHAIN_MAX);
    for (uint32_t i = 0; i < count; i++) {
        transfers[i] = transfer_make(player, board, channel, kind != 0);
    }
    if (kind == 0) {
        transfers[0].flags = 0;
        EXPECT_EQ(peach2_dma_prepare(board, channel, transfers, &notify), 0);
        return;
    }
    enum peach2_chain_memory memory = kind == 1 ? PEACH2_CHAIN_HOST : PEACH2_CHAIN_BOARD;
    peach2_chain_t **chain = &player->chains[channel];
    EXPECT_EQ(peach2_chain_create(board, memory, 100 * channel, transfers, count, chain), 0);
    if (player->play->mistakes_in != 0 && dice(player, 2 * player->play->mistakes_in) == 0) {
        EXPECT_EQ(peach2_chain_relink(*chain, dice(player, count), dice(player, count)), 0);
    }
    EXPECT_EQ(peach2_chain_prepare(board, channel, *chain, &notify), 0);
}

static void stores(struct player *player, peach2_handle_t *board)
{
    uint8_t data[200];
    uint32_t bytes = 1 + dice(player, sizeof data), node = dice(player, NODES);
    for (uint32_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)dice(player, 256);
    }
    uint64_t address = FLAGS + 4096 * (1 + player->node) + dice(player, 2048);
    EXPECT_EQ(peach2_pio_write(board, peach2_window_address(board, node, address), data, bytes), 0);
}

static void round_play(struct player *player, peach2_handle_t *board)
{
    unsigned channels = 1 + dice(player, CHANNELS);
    for (unsigned channel = 0; channel < channels; channel++) {
        channel_prepare(player, board, channel);
    }
    for (unsigned channel = 0; channel < channels; channel++) {
        EXPECT_EQ(peach2_dma_start(board, channel), 0);
        if (dice(player, 5) == 0) {
            EXPECT_EQ(peach2_dma_start(board, channel), 0); // ignored, or a second run
        }
    }
    stores(player, board);
    for (unsigned channel = 0; channel < channels; channel++) {
        unsigned error = 0;
        uint32_t value = 0;
        (void)peach2_wait_status(board, status_word(player, channel), 0, &value, &error);
        (void)peach2_dma_wait(board, channel, &error);
        note(player, (uint64_t)error << 32 | value);
        note_register(player, board, PEACH2_DMAC_BASE + channel * PEACH2_DMAC_STRIDE + PEACH2_DMAC_STATUS);
        note_register(player, board, PEACH2_DMAC_BASE + channel * PEACH2_DMAC_STRIDE + PEACH2_DMAC_COMPLETED);
        *status_word(player, channel) = 0;
        peach2_chain_destroy(player->chains[channel]);
        player->chains[channel] = NULL;
    }
}

// Waits until no counter changes any more: when a node has the flag of another, it has all data sent before the flag.
static void meet(struct player *player, peach2_handle_t *board)
{
    const struct backend *backend = peach2_backend(board);
    uint64_t one = 1;
    for (uint32_t i = 1; i < NODES; i++) {
        uint32_t node = (player->node + NODES - i) % NODES;
        EXPECT_EQ(peach2_pio_write(board, peach2_window_address(board, node, FLAGS + 8 * player->node), &one, 8), 0);
    }
    for (uint32_t node = 0; node < NODES; node++) {
        const uint64_t *flag = (const uint64_t *)site_memory(&player->play->site, player->node, FLAGS + 8 * node);
        if (node != player->node) {
            EXPECT_EQ(backend->ops->wait_word(backend->ctx, flag, one, one, 0), 0);
        }
    }
}

static void player_run(void *arg, peach2_handle_t *board)
{
    struct player *player = arg;
    player->source = site_pinned(board, SOURCE_BYTES);
    player->status = site_pinned(board, 8 * CHANNELS);
    site_fill(player->source.address, SOURCE_BYTES, player->node);
    for (unsigned i = 0; i < player->play->rounds; i++) {
        round_play(player, board);
    }
    meet(player, board);
    for (uint32_t offset = PEACH2_COUNTER_TLPS_IN_N; offset <= PEACH2_COUNTER_REFUSED_WRITES; offset += 4) {
        note_register(player, board, PEACH2_COUNTER_BASE + offset);
    }
    note_register(player, board, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_PENDING);
    for (uint32_t offset = BOARD_BASE; offset < BOARD_BASE + NODES * CHANNELS * BOARD_AREA; offset += 256) {
        uint64_t value = 0;
        EXPECT_EQ(peach2_board_memory_read(board, offset, &value), 0);
        note(player, value);
    }
}

// --- runs -----------------------------------------------------------------------------------------------------------

static void play(struct record *record, uint64_t seed, unsigned rounds, unsigned mistakes_in,
                 void (*change)(struct scn_scenario *scenario), const enum scn_fidelity fidelities[NODES])
{
    struct play *play = calloc(1, sizeof *play);
    ASSERT_NOT_NULL(play);
    play->rounds = rounds;
    play->mistakes_in = mistakes_in;
    site_init(&play->site, NODES);
    if (change != NULL) {
        change(play->site.scenario);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        play->site.scenario->nodes[i].board.fidelity = fidelities[i];
    }
    site_build(&play->site);
    for (uint32_t i = 0; i < NODES; i++) {
        play->players[i].play = play;
        play->players[i].node = i;
        sim_random_init(&play->players[i].random, seed, play->site.scenario->nodes[i].name);
        plat_machine_set_program(play->site.machine, i, player_run, &play->players[i]);
    }
    EXPECT_EQ(plat_machine_run(play->site.machine), SIM_RUN_DONE);
    EXPECT_EQ(plat_machine_live_packets(play->site.machine), 0);
    record->end_ps = sim_now_ps(plat_machine_sim(play->site.machine));
    record->count = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        memcpy(record->words + record->count, play->players[i].words, play->players[i].count * sizeof(uint64_t));
        record->count += play->players[i].count;
        record->arenas[i] = malloc(ARENA);
        ASSERT_NOT_NULL(record->arenas[i]);
        memcpy(record->arenas[i], site_memory(&play->site, i, BASE), ARENA);
    }
    site_fini(&play->site);
    free(play);
}

static void record_free(struct record *record)
{
    for (uint32_t i = 0; i < NODES; i++) {
        free(record->arenas[i]);
    }
    free(record);
}

static void record_compare(const struct record *rtl, const struct record *twin)
{
    EXPECT_EQ(twin->count, rtl->count);
    EXPECT_MEMEQ(twin->words, rtl->words, rtl->count * sizeof rtl->words[0]);
    for (uint32_t i = 0; i < NODES; i++) {
        EXPECT_MEMEQ(twin->arenas[i], rtl->arenas[i], ARENA);
    }
    EXPECT_EQ(twin->end_ps, rtl->end_ps);
}

static const enum scn_fidelity rtl_boards[NODES] = {SCN_FIDELITY_RTL, SCN_FIDELITY_RTL, SCN_FIDELITY_RTL};
static const enum scn_fidelity twin_boards[NODES] = {SCN_FIDELITY_TWIN, SCN_FIDELITY_TWIN, SCN_FIDELITY_TWIN};
static const enum scn_fidelity mixed_boards[NODES] = {SCN_FIDELITY_TWIN, SCN_FIDELITY_RTL, SCN_FIDELITY_TWIN};

static void compare(uint64_t seed, unsigned rounds, unsigned mistakes_in, void (*change)(struct scn_scenario *scenario))
{
    struct record *rtl = calloc(1, sizeof *rtl), *twin = calloc(1, sizeof *twin), *mixed = calloc(1, sizeof *mixed);
    ASSERT_NOT_NULL(rtl);
    ASSERT_NOT_NULL(twin);
    ASSERT_NOT_NULL(mixed);
    play(rtl, seed, rounds, mistakes_in, change, rtl_boards);
    play(twin, seed, rounds, mistakes_in, change, twin_boards);
    play(mixed, seed, rounds, mistakes_in, change, mixed_boards);
    record_compare(rtl, twin);
    record_compare(rtl, mixed);
    record_free(rtl);
    record_free(twin);
    record_free(mixed);
}

// Compares on the seeds 1 to `last`, or on those of the environment variable TCASIM_SEEDS=FIRST-LAST.
static void compare_seeds(unsigned last, unsigned rounds, unsigned mistakes_in,
                          void (*change)(struct scn_scenario *scenario))
{
    unsigned first = 1;
    const char *asked = getenv("TCASIM_SEEDS");
    if (asked != NULL) {
        ASSERT_EQ(sscanf(asked, "%u-%u", &first, &last), 2);
    }
    for (unsigned seed = first; seed <= last; seed++) {
        TEST_TRACE("seed %u", seed);
        compare(seed, rounds, mistakes_in, change);
    }
}

TEST(Twin, DoesWhatTheRtlDoesUnderRandomPrograms)
{
    compare_seeds(8, 12, 0, NULL);
}

TEST(Twin, FailsAsTheRtlDoes)
{
    compare_seeds(8, 12, 12, NULL);
}

// A read that failed is dropped in the cycle before the last beat of the channel's previous one leaves the chip. The
// channel goes on in the cycle after both.
TEST(Twin, WaitsForTheLastBeatOfAReadBeforeADroppedOne)
{
    compare(379, 12, 12, NULL);
}

// A check of the next transfer fails in the cycles in which a read of the previous one does.
TEST(Twin, ReportsTheEarlierOfTwoErrors)
{
    compare(1300, 12, 12, NULL);
}

static void make_narrow(struct scn_scenario *scenario)
{
    for (unsigned i = 0; i < NODES; i++) {
        scenario->nodes[i].host.mps_bytes = 128;
        scenario->nodes[i].host.posted_header_credits = 2;
        scenario->nodes[i].host.posted_data_credits = 32;
        scenario->nodes[i].board.posted_header_credits = 3;
        scenario->nodes[i].board.posted_data_credits = 48;
        scenario->nodes[i].board.tx_buffer_tlps = 5;
    }
    scenario->cables[0].link.lanes = 1;
}

TEST(Twin, StallsWhereTheRtlDoes)
{
    compare_seeds(6, 10, 0, make_narrow);
}

static void make_small_reads(struct scn_scenario *scenario)
{
    for (unsigned i = 0; i < NODES; i++) {
        scenario->nodes[i].board.dmac_read_bytes = 64;
        scenario->nodes[i].board.dmac_read_tags = 3;
        scenario->nodes[i].board.dmac_prefetch = 1 + i;
        scenario->nodes[i].board.dmac_start_cycles = 300;
        scenario->nodes[i].board.dmac_fetch_cycles = 20 * i;
        scenario->nodes[i].board.clock_mhz = 125;
    }
}

TEST(Twin, SharesFewTagsAsTheRtlDoes)
{
    compare_seeds(6, 10, 30, make_small_reads);
}

// --- each error by name ---------------------------------------------------------------------------------------------

#define WINDOW      0x8000000000ull
#define REMOTE      (WINDOW + (1ull << 35) + BASE)
#define LAST        (1u << 31)
#define START_HOST  (PEACH2_DMAC_CONTROL_START_MASK | 1u << PEACH2_DMAC_CONTROL_MODE_LSB)
#define START_BOARD (PEACH2_DMAC_CONTROL_START_MASK | 2u << PEACH2_DMAC_CONTROL_MODE_LSB)
#define START_NONE  (PEACH2_DMAC_CONTROL_START_MASK | 3u << PEACH2_DMAC_CONTROL_MODE_LSB)
#define START       PEACH2_DMAC_CONTROL_START_MASK

// Values of the registers, and of the descriptor at 0 of the board's memory.
struct mistake {
    uint64_t source, destination;
    uint32_t bytes, control;
    uint64_t chain;
    uint32_t flags;
    uint64_t next;
    unsigned error;
};

static const struct mistake mistakes[] = {
    {BASE, REMOTE, 64, START, 0, 0, 0, 0},
    {BASE + 2, REMOTE + 2, 64, START, 0, 0, 0, 1},
    {BASE, REMOTE + 4, 64, START, 0, 0, 0, 1},
    {BASE, REMOTE, 62, START, 0, 0, 0, 1},
    {BASE, REMOTE, 0, START, 0, 0, 0, 2},
    {BASE, REMOTE, 0x1000000, START, 0, 0, 0, 2},
    {BASE, WINDOW + (9ull << 35), 64, START, 0, 0, 0, 3},
    {REMOTE, BASE, 64, START, 0, 0, 0, 3},
    {BASE, WINDOW + (2ull << 33) - 64, 128, START, 0, 0, 0, 3},      // out of the block
    {BASE, WINDOW + (3ull << 33) + 0x17fc0, 128, START, 0, 0, 0, 3}, // out of the board's memory
    {BASE, WINDOW + (3ull << 33), 64, START, 0, 0, 0, 3},            // to the board's registers
    {BASE, WINDOW + (3ull << 33) + 0x17fc0, 64, START, 0, 0, 0, 0},  // up to the end of the board's memory
    {HOLE, REMOTE, 64, START, 0, 0, 0, 4},
    {BASE, REMOTE, 64, START_HOST, HOLE, 0, 0, 4}, // no component answers the read of the descriptor
    {BASE, REMOTE, 64, START_BOARD, 0, 0, 0, 7},   // to itself
    {BASE, REMOTE, 64, START_BOARD, 16, 0, 0, 8},
    {BASE, REMOTE, 64, START_BOARD, 0, 0, 0x8000, 8},
    {BASE, REMOTE, 64, START_BOARD, 0, LAST | 1u << 24, 0, 9}, // a reserved bit
    {BASE, REMOTE, 64, START_NONE, 0, 0, 0, 9},
};
enum { MISTAKES = sizeof mistakes / sizeof mistakes[0] };

struct trial {
    const struct mistake *mistake;
    uint64_t status, completed, end_ps;
};

static void try_mistake(void *arg, peach2_handle_t *board)
{
    struct trial *trial = arg;
    const struct mistake *mistake = trial->mistake;
    const uint64_t descriptor[4] = {mistake->source, mistake->destination, mistake->bytes | (uint64_t)mistake->flags,
                                    mistake->next};
    unsigned error;
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_EQ(peach2_board_memory_write(board, 8 * i, descriptor[i]), 0);
    }
    peach2_register_write(board, PEACH2_DMAC_BASE + PEACH2_DMAC_SOURCE, mistake->source, 8);
    peach2_register_write(board, PEACH2_DMAC_BASE + PEACH2_DMAC_DESTINATION, mistake->destination, 8);
    peach2_register_write(board, PEACH2_DMAC_BASE + PEACH2_DMAC_DESCRIPTOR, mistake->chain, 8);
    peach2_register_write(board, PEACH2_DMAC_BASE + PEACH2_DMAC_LENGTH, mistake->bytes, 4);
    peach2_register_write(board, PEACH2_DMAC_BASE + PEACH2_DMAC_CONTROL, mistake->control, 4);
    EXPECT_EQ(peach2_dma_wait(board, 0, &error), mistake->error == 0 ? 0 : -EREMOTEIO);
    EXPECT_EQ(error, mistake->error);
    EXPECT_EQ(peach2_register_read(board, PEACH2_DMAC_BASE + PEACH2_DMAC_STATUS, 4, &trial->status), 0);
    EXPECT_EQ(peach2_register_read(board, PEACH2_DMAC_BASE + PEACH2_DMAC_COMPLETED, 4, &trial->completed), 0);
}

static struct trial trial_run(const struct mistake *mistake, enum scn_fidelity fidelity)
{
    struct trial trial = {.mistake = mistake};
    struct site site;
    site_init(&site, 2);
    site.scenario->nodes[0].board.fidelity = fidelity;
    site.scenario->nodes[1].board.fidelity = fidelity;
    site_build(&site);
    plat_machine_set_program(site.machine, 0, try_mistake, &trial);
    EXPECT_EQ(plat_machine_run(site.machine), SIM_RUN_DONE);
    EXPECT_EQ(plat_machine_live_packets(site.machine), 0);
    trial.end_ps = sim_now_ps(plat_machine_sim(site.machine));
    site_fini(&site);
    return trial;
}

TEST(Twin, NamesEachErrorAsTheRtlDoes)
{
    for (unsigned i = 0; i < MISTAKES; i++) {
        struct trial rtl = trial_run(&mistakes[i], SCN_FIDELITY_RTL), twin = trial_run(&mistakes[i], SCN_FIDELITY_TWIN);
        EXPECT_EQ(twin.status, rtl.status);
        EXPECT_EQ(twin.completed, rtl.completed);
        EXPECT_EQ(twin.end_ps, rtl.end_ps);
    }
}
