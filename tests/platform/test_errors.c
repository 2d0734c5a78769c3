// Every error of a DMA is reported by name; no such DMA hangs or writes anything.
#include <errno.h>

#include "tests/support/site.h"

#define BASE (4 * MIB)
#define HOLE 0x100000000ull // 4 GiB: above the memory, below BAR 0

struct attempt {
    struct site site;
    uint64_t source, destination; // 0: a valid address
    uint32_t bytes;
    unsigned error;
};

static void try_register(void *arg, peach2_handle_t *board)
{
    struct attempt *attempt = arg;
    struct backend_buffer source = site_pinned(board, 4096), status = site_pinned(board, 8);
    const struct peach2_transfer transfer = {
        .source = attempt->source != 0 ? attempt->source : source.bus_address,
        .destination = attempt->destination != 0 ? attempt->destination : peach2_window_address(board, 1, BASE),
        .bytes = attempt->bytes,
    };
    const struct peach2_notify notify = {.local_address = status.bus_address,
                                         .remote_address = peach2_window_address(board, 1, 2 * BASE)};
    EXPECT_EQ(peach2_dma_prepare(board, 0, &transfer, &notify), 0);
    EXPECT_EQ(peach2_dma_start(board, 0), 0);
    EXPECT_EQ(peach2_wait_status(board, status.address, 0, NULL, &attempt->error), -EREMOTEIO);
    unsigned again = 99;
    EXPECT_EQ(peach2_dma_wait(board, 0, &again), -EREMOTEIO);
    EXPECT_EQ(again, attempt->error);
    // The channel works again afterwards.
    EXPECT_EQ(site_dma(board, 0, source.bus_address, peach2_window_address(board, 1, 3 * BASE), 4), PEACH2_DMA_OK);
}

static void expect_error(uint64_t source, uint64_t destination, uint32_t bytes, enum peach2_dma_error error)
{
    struct attempt attempt = {.source = source, .destination = destination, .bytes = bytes, .error = 99};
    site_init(&attempt.site, 2);
    site_build(&attempt.site);
    ASSERT_NOT_NULL(attempt.site.machine);
    plat_machine_set_program(attempt.site.machine, 0, try_register, &attempt);
    EXPECT_EQ(plat_machine_run(attempt.site.machine), SIM_RUN_DONE);
    EXPECT_EQ(attempt.error, error);
    EXPECT_EQ(plat_machine_live_packets(attempt.site.machine), 0);
    // Neither data nor the remote status word arrived; the four bytes are those of the valid DMA.
    EXPECT_EQ(site_counter(&attempt.site, "node1.memory", "written_bytes"), 4);
    site_fini(&attempt.site);
}

TEST(DmaErrors, NameAMisalignedAddressOrLength)
{
    expect_error(BASE + 2, 0, 64, PEACH2_DMA_MISALIGNED);
    expect_error(0, 0, 63, PEACH2_DMA_MISALIGNED);
    expect_error(BASE + 4, 0, 64, PEACH2_DMA_MISALIGNED); // low four bits differ
}

TEST(DmaErrors, NameALengthOfNothingOrTooMuch)
{
    expect_error(0, 0, 0, PEACH2_DMA_LENGTH);
    expect_error(0, 0, 0x1000000, PEACH2_DMA_LENGTH);
}

TEST(DmaErrors, NameADestinationThatNoRouteTakes)
{
    expect_error(0, 0x8000000000ull + (9ull << 35), 64, PEACH2_DMA_UNROUTABLE);
}

TEST(DmaErrors, NameASourceInAnotherNode)
{
    expect_error(0x8000000000ull + (1ull << 35) + BASE, 0, 64, PEACH2_DMA_UNROUTABLE);
}

TEST(DmaErrors, NameASourceThatNobodyClaims)
{
    expect_error(HOLE, 0, 64, PEACH2_DMA_READ_UR);
    expect_error(HOLE, 0, 8192, PEACH2_DMA_READ_UR);
}

// --- chains --------------------------------------------------------------------------------------------------------

struct chain_attempt {
    struct site site;
    enum peach2_chain_memory memory;
    uint32_t index, next; // relinked
    unsigned error;
};

static void try_chain(void *arg, peach2_handle_t *board)
{
    struct chain_attempt *attempt = arg;
    struct backend_buffer source = site_pinned(board, 4096);
    struct peach2_transfer transfers[5];
    peach2_chain_t *chain;
    for (unsigned i = 0; i < 5; i++) {
        transfers[i] = (struct peach2_transfer){
            .source = source.bus_address, .destination = peach2_window_address(board, 1, BASE), .bytes = 64};
    }
    EXPECT_EQ(peach2_chain_create(board, attempt->memory, 0, transfers, 5, &chain), 0);
    EXPECT_EQ(peach2_chain_relink(chain, attempt->index, attempt->next), 0);
    EXPECT_EQ(peach2_chain_prepare(board, 0, chain, NULL), 0);
    EXPECT_EQ(peach2_dma_start(board, 0), 0);
    EXPECT_EQ(peach2_dma_wait(board, 0, &attempt->error), -EREMOTEIO);
}

static void expect_chain_error(enum peach2_chain_memory memory, uint32_t index, uint32_t next,
                               enum peach2_dma_error error)
{
    struct chain_attempt attempt = {.memory = memory, .index = index, .next = next, .error = 99};
    site_init(&attempt.site, 2);
    site_build(&attempt.site);
    ASSERT_NOT_NULL(attempt.site.machine);
    plat_machine_set_program(attempt.site.machine, 0, try_chain, &attempt);
    EXPECT_EQ(plat_machine_run(attempt.site.machine), SIM_RUN_DONE);
    EXPECT_EQ(attempt.error, error);
    EXPECT_EQ(plat_machine_live_packets(attempt.site.machine), 0);
    site_fini(&attempt.site);
}

TEST(DmaErrors, NameAChainThatLoops)
{
    expect_chain_error(PEACH2_CHAIN_HOST, 4, 0, PEACH2_DMA_CHAIN_LOOP);
    expect_chain_error(PEACH2_CHAIN_BOARD, 4, 2, PEACH2_DMA_CHAIN_LOOP);
}

TEST(DmaErrors, NameADescriptorThatPointsToItself)
{
    expect_chain_error(PEACH2_CHAIN_HOST, 2, 2, PEACH2_DMA_CHAIN_LOOP);
    expect_chain_error(PEACH2_CHAIN_BOARD, 0, 0, PEACH2_DMA_CHAIN_LOOP);
}

TEST(DmaErrors, NameADescriptorOutsideTheBoardsMemory)
{
    expect_chain_error(PEACH2_CHAIN_BOARD, 1, PEACH2_BOARD_DESCRIPTORS, PEACH2_DMA_DESCRIPTOR);
}

TEST(DmaErrors, NameADescriptorThatNobodyAnswers)
{
    expect_chain_error(PEACH2_CHAIN_HOST, 1, 0x4000000, PEACH2_DMA_READ_UR); // 2 GiB further: above the memory
}

static void try_odd_descriptor(void *arg, peach2_handle_t *board)
{
    struct chain_attempt *attempt = arg;
    peach2_register_write(board, 0x418, BASE + 16, 8);
    peach2_register_write(board, 0x414, 0x3, 4); // START, chain in host memory
    EXPECT_EQ(peach2_dma_wait(board, 0, &attempt->error), -EREMOTEIO);
}

TEST(DmaErrors, NameADescriptorAddressThatIsNoMultipleOfItsSize)
{
    struct chain_attempt attempt = {.error = 99};
    site_init(&attempt.site, 1);
    site_build(&attempt.site);
    ASSERT_NOT_NULL(attempt.site.machine);
    plat_machine_set_program(attempt.site.machine, 0, try_odd_descriptor, &attempt);
    EXPECT_EQ(plat_machine_run(attempt.site.machine), SIM_RUN_DONE);
    EXPECT_EQ(attempt.error, PEACH2_DMA_DESCRIPTOR);
    site_fini(&attempt.site);
}

// --- counters of the chip -------------------------------------------------------------------------------------------

static void write_beyond_the_nodes(void *arg, peach2_handle_t *board)
{
    (void)arg;
    const struct backend *backend = peach2_backend(board);
    for (unsigned i = 0; i < 3; i++) {
        backend->ops->write(backend->ctx, BACKEND_BAR_WINDOW, 9ull << 35, i, 4);
    }
}

TEST(ChipCounters, TellWhatTheRouterDiscardedOnBothKindsOfBoard)
{
    for (unsigned twin = 0; twin < 2; twin++) {
        struct site site;
        site_init(&site, 2);
        site.scenario->nodes[0].board.fidelity = twin != 0 ? SCN_FIDELITY_TWIN : SCN_FIDELITY_RTL;
        site_build(&site);
        site_run(&site, write_beyond_the_nodes);
        EXPECT_EQ(site_counter(&site, "node0.chip", "unroutable_writes"), 0); // not read yet
        plat_chip_counters_read(site.machine);
        EXPECT_EQ(site_counter(&site, "node0.chip", "unroutable_writes"), 3);
        EXPECT_EQ(site_counter(&site, "node0.chip", "tlps_in_n"), site_counter(&site, "node0.slot.1", "tlps_received"));
        EXPECT_EQ(site_counter(&site, "node1.chip", "tlps_in_w"), 0);
        site_fini(&site);
    }
}
