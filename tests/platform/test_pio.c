#include <string.h>

#include "tests/support/site.h"

#define GUARD 0x5c
#define BASE  (4 * MIB)

// Stores `bytes` at `offset` of the neighbour's memory, which no program has allocated; the test reads it directly.
static void write_some(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    uint8_t data[512];
    site_fill(data, (size_t)site->value[1], 1);
    uint64_t address = peach2_window_address(board, (uint32_t)site->value[2], BASE + site->value[0]);
    EXPECT_EQ(peach2_pio_write(board, address, data, (size_t)site->value[1]), 0);
}

static void expect_written(unsigned nodes, uint64_t offset, uint64_t bytes)
{
    struct site site;
    site_init(&site, nodes);
    site_build(&site);
    memset(site_memory(&site, nodes - 1, BASE), GUARD, 4096);
    site.value[0] = offset;
    site.value[1] = bytes;
    site.value[2] = nodes - 1;
    site_run(&site, write_some);
    const uint8_t *memory = site_memory(&site, nodes - 1, BASE);
    EXPECT_TRUE(site_is_value(memory, offset, GUARD));
    EXPECT_TRUE(site_is_filled(memory + offset, bytes, 1));
    EXPECT_TRUE(site_is_value(memory + offset + bytes, 4096 - offset - bytes, GUARD));
    site_fini(&site);
}

TEST(Pio, WritesTheNeighboursMemoryAndNothingBesideIt)
{
    expect_written(2, 0, 8);
    expect_written(2, 64, 256);
}

TEST(Pio, WritesSingleBytesAndCrossesLinesUnaligned)
{
    expect_written(2, 3, 1);
    expect_written(2, 61, 7);
    expect_written(2, 127, 130);
}

TEST(Pio, ReachesANodeBehindAnother)
{
    expect_written(3, 12, 100);
}

TEST(Pio, ReachesTheOwnMemoryThroughTheWindow)
{
    expect_written(1, 20, 24);
}

static void write_nowhere(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    uint64_t data = 1;
    (void)peach2_register_read(board, 0x820, 4, &site->value[0]);
    EXPECT_EQ(peach2_pio_write(board, peach2_window_address(board, 9, BASE), &data, 8), 0);
    (void)peach2_register_read(board, 0x820, 4, &site->value[1]);
}

TEST(Pio, CountsAWriteThatNoRouteTakesAndWritesNothingElsewhere)
{
    struct site site;
    site_init(&site, 2);
    site_build(&site);
    site_run(&site, write_nowhere);
    EXPECT_EQ(site.value[1], site.value[0] + 1);
    EXPECT_EQ(site_counter(&site, "node0.memory", "writes"), 0);
    EXPECT_EQ(site_counter(&site, "node1.memory", "writes"), 0);
    EXPECT_EQ(site_counter(&site, "node0.root_complex", "unsupported_writes"), 0);
    site_fini(&site);
}

static void write_beyond_memory(void *arg, peach2_handle_t *board)
{
    (void)arg;
    uint64_t data = 1;
    EXPECT_EQ(peach2_pio_write(board, peach2_window_address(board, 1, 64 * MIB), &data, 8), 0);
}

TEST(Pio, CountsAWriteBeyondTheNeighboursMemory)
{
    struct site site;
    site_init(&site, 2);
    site_build(&site);
    site_run(&site, write_beyond_memory);
    EXPECT_EQ(site_counter(&site, "node1.root_complex", "unsupported_writes"), 1);
    EXPECT_EQ(site_counter(&site, "node1.memory", "writes"), 0);
    site_fini(&site);
}

static void read_neighbour(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    const struct backend *backend = peach2_backend(board);
    uint64_t offset =
        peach2_window_address(board, 1, BASE) - backend->ops->bar_bus_address(backend->ctx, BACKEND_BAR_WINDOW);
    EXPECT_NE(backend->ops->read(backend->ctx, BACKEND_BAR_WINDOW, offset, 8, &site->value[0]), 0);
}

TEST(Pio, AnswersReadsOfAnotherNodeAsUnsupported)
{
    struct site site;
    site_init(&site, 2);
    site_build(&site);
    site_run(&site, read_neighbour);
    EXPECT_EQ(site.value[0], UINT64_MAX);
    site_fini(&site);
}
