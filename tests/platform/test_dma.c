#include <errno.h>
#include <string.h>

#include "tests/support/site.h"

#define BASE  (4 * MIB)
#define GUARD 0x5c

static void prepare_target(struct site *site, uint32_t node)
{
    memset(site_memory(site, node, BASE), GUARD, MIB);
}

static void register_dma(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    struct backend_buffer source = site_pinned(board, 65536);
    site_fill(source.address, 65536, 2);
    EXPECT_EQ(site_dma(board, 0, source.bus_address + 16, peach2_window_address(board, 1, BASE + 4096 + 16), 10000),
              PEACH2_DMA_OK);
    (void)site;
}

TEST(Dma, MovesARangeToTheNeighbour)
{
    struct site site;
    uint8_t expected[10016];
    site_init(&site, 2);
    site_build(&site);
    prepare_target(&site, 1);
    site_run(&site, register_dma);
    site_fill(expected, sizeof expected, 2);
    const uint8_t *memory = site_memory(&site, 1, BASE);
    EXPECT_MEMEQ(memory + 4096 + 16, expected + 16, 10000);
    EXPECT_TRUE(site_is_value(memory, 4096 + 16, GUARD));
    EXPECT_TRUE(site_is_value(memory + 4096 + 10016, 4096, GUARD));
    site_fini(&site);
}

static void notify_both(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    struct backend_buffer source = site_pinned(board, 4096), status = site_pinned(board, 8);
    const struct peach2_transfer transfer = {
        .source = source.bus_address, .destination = peach2_window_address(board, 1, BASE), .bytes = 64};
    const struct peach2_notify notify = {
        .local_address = status.bus_address, .remote_address = peach2_window_address(board, 1, 2 * BASE), .value = 42};
    uint32_t value = 0;
    unsigned error = 99;
    EXPECT_EQ(peach2_dma_prepare(board, 1, &transfer, &notify), 0);
    EXPECT_EQ(peach2_dma_start(board, 1), 0);
    EXPECT_EQ(peach2_wait_status(board, status.address, 0, &value, &error), 0);
    EXPECT_EQ(value, 42);
    EXPECT_EQ(error, PEACH2_DMA_OK);
    (void)site;
}

TEST(Dma, TellsBothSidesWhenItIsDone)
{
    struct site site;
    site_init(&site, 2);
    site_build(&site);
    site_run(&site, notify_both);
    uint64_t word;
    memcpy(&word, site_memory(&site, 1, 2 * BASE), sizeof word);
    EXPECT_EQ(word, 0x000000020000002a); // DONE, and the value
    site_fini(&site);
}

static void chain_dma(struct site *site, peach2_handle_t *board, enum peach2_chain_memory memory)
{
    struct backend_buffer source = site_pinned(board, 65536);
    struct peach2_transfer transfers[9];
    peach2_chain_t *chain;
    unsigned error = 99;
    site_fill(source.address, 65536, 3);
    for (unsigned i = 0; i < 9; i++) {
        transfers[i] =
            (struct peach2_transfer){.source = source.bus_address + 4096ull * i,
                                     .destination = peach2_window_address(board, 1, BASE + 8192ull * (8 - i)),
                                     .bytes = 100 + 4 * i};
    }
    EXPECT_EQ(peach2_chain_create(board, memory, 17, transfers, 9, &chain), 0);
    EXPECT_EQ(peach2_chain_prepare(board, 2, chain, NULL), 0);
    EXPECT_EQ(peach2_dma_start(board, 2), 0);
    EXPECT_EQ(peach2_dma_wait(board, 2, &error), 0);
    EXPECT_EQ(peach2_register_read(board, 0x500 + 0x38, 4, &site->value[0]), 0);
    EXPECT_EQ(site->value[0], 9); // COMPLETED
}

static void chain_in_host(void *arg, peach2_handle_t *board)
{
    chain_dma(arg, board, PEACH2_CHAIN_HOST);
}

static void chain_on_board(void *arg, peach2_handle_t *board)
{
    chain_dma(arg, board, PEACH2_CHAIN_BOARD);
}

static void expect_chain(plat_program_fn program)
{
    struct site site;
    static uint8_t expected[65536];
    site_init(&site, 2);
    site_build(&site);
    prepare_target(&site, 1);
    site_run(&site, program);
    site_fill(expected, sizeof expected, 3);
    for (unsigned i = 0; i < 9; i++) {
        const uint8_t *memory = site_memory(&site, 1, BASE + 8192ull * (8 - i));
        EXPECT_MEMEQ(memory, expected + 4096 * i, 100 + 4 * i);
        EXPECT_TRUE(site_is_value(memory + 100 + 4 * i, 8192 - 100 - 4 * i, GUARD));
    }
    site_fini(&site);
}

TEST(Dma, WalksAChainInHostMemory)
{
    expect_chain(chain_in_host);
}

TEST(Dma, WalksAChainInTheBoardsMemory)
{
    expect_chain(chain_on_board);
}

static void start_twice(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    struct backend_buffer source = site_pinned(board, MIB);
    const struct peach2_transfer transfer = {
        .source = source.bus_address, .destination = peach2_window_address(board, 1, BASE), .bytes = MIB};
    unsigned error = 99;
    EXPECT_EQ(peach2_dma_prepare(board, 0, &transfer, NULL), 0);
    EXPECT_EQ(peach2_dma_start(board, 0), 0);
    EXPECT_EQ(peach2_dma_start(board, 0), 0);
    EXPECT_EQ(peach2_dma_start(board, 0), 0);
    EXPECT_EQ(peach2_dma_wait(board, 0, &error), 0);
    EXPECT_EQ(peach2_register_read(board, 0x434, 4, &site->value[0]), 0);
}

TEST(Dma, IgnoresAndCountsAStartWhileItRuns)
{
    struct site site;
    site_init(&site, 2);
    site_build(&site);
    site_run(&site, start_twice);
    EXPECT_EQ(site.value[0] >> 16 & 0xff, 2);
    site_fini(&site);
}

static void fill_own(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    struct backend_buffer source = site_pinned(board, 8192), target = site_pinned(board, 8192);
    site_fill(source.address, 8192, 4);
    EXPECT_EQ(site_dma(board, 3, source.bus_address, target.bus_address, 8192), PEACH2_DMA_OK);
    site->value[0] = site_is_filled(target.address, 8192, 4);
    // The node's own memory at its address in the window, as source and as destination
    EXPECT_EQ(site_dma(board, 3, peach2_window_address(board, 0, target.bus_address),
                       peach2_window_address(board, 0, source.bus_address + 4096), 4096),
              PEACH2_DMA_OK);
    site->value[1] = site_is_filled((uint8_t *)source.address + 4096, 4096, 4);
}

TEST(Dma, CopiesWithinTheOwnMemory)
{
    struct site site;
    site_init(&site, 1);
    site_build(&site);
    site_run(&site, fill_own);
    EXPECT_EQ(site.value[0], 1);
    EXPECT_EQ(site.value[1], 1);
    site_fini(&site);
}
