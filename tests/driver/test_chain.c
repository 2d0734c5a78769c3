// Descriptors as the board reads them: source, destination, length with LAST in bit 31, 4 B reserved, next.
#include <errno.h>
#include <string.h>

#include "machine.h"

#define MEMORY 0x10000u
#define LAST   0x80000000u

static const struct peach2_transfer transfers[3] = {
    {.source = 0x100000, .destination = 0x9000200000, .bytes = 4096},
    {.source = 0x101000, .destination = 0x9000201000, .bytes = 64},
    {.source = 0x102000, .destination = 0x9000202000, .bytes = 0xfffffc}};

struct words {
    uint64_t source, destination;
    uint32_t length, reserved;
    uint64_t next;
};

static struct words board_descriptor(const struct machine *m, unsigned index)
{
    struct words words;
    memcpy(&words, m->bar0 + MEMORY + 32 * index, sizeof words);
    return words;
}

TEST(DriverChain, LiesContiguouslyInTheBoardsMemory)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    peach2_chain_t *chain = NULL;
    EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_BOARD, 5, transfers, 3, &chain), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct words words = board_descriptor(&m, 5 + i);
        EXPECT_EQ(words.source, transfers[i].source);
        EXPECT_EQ(words.destination, transfers[i].destination);
        EXPECT_EQ(words.length, transfers[i].bytes | (i == 2 ? LAST : 0));
        EXPECT_EQ(words.reserved, 0);
        EXPECT_EQ(words.next, i == 2 ? 0 : 32 * (6 + i));
    }
    EXPECT_EQ(m.log[m.log_count - 1].access, ACCESS_FENCE);
    peach2_chain_destroy(chain);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverChain, LinksHostDescriptorsByBusAddress)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    peach2_chain_t *chain = NULL;
    EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_HOST, 0, transfers, 3, &chain), 0);
    EXPECT_EQ(m.pinned_live, 1);
    const struct peach2_notify notify = {.local_address = 0x300000, .value = 1};
    EXPECT_EQ(peach2_chain_prepare(handle, 0, chain, &notify), 0);
    EXPECT_EQ(machine_register(&m, 0x418, 8), 0x100000); // the machine's first pinned page
    EXPECT_EQ(peach2_dma_start(handle, 0), 0);
    EXPECT_EQ(machine_last_write(&m, 0x414)->value, 0x13); // START, mode 1, NOTIFY_LOCAL
    peach2_chain_destroy(chain);
    EXPECT_EQ(m.pinned_live, 0);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverChain, NamesABoardChainByItsOffset)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    peach2_chain_t *chain = NULL;
    EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_BOARD, 1021, transfers, 3, &chain), 0);
    EXPECT_EQ(peach2_chain_prepare(handle, 3, chain, NULL), 0);
    EXPECT_EQ(machine_register(&m, 0x580 + 0x18, 8), 1021 * 32);
    EXPECT_EQ(peach2_dma_start(handle, 3), 0);
    EXPECT_EQ(machine_last_write(&m, 0x580 + 0x14)->value, 0x5); // START, mode 2
    peach2_close(handle);                                        // also destroys the chain
    machine_fini(&m);
}

TEST(DriverChain, ThatIsSelectedNotifiesAsTheChannelWasPrepared)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    peach2_chain_t *first = NULL, *other = NULL;
    const struct peach2_notify notify = {.local_address = 0x300000, .remote_address = 0x9000300000, .value = 1};
    EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_HOST, 0, transfers, 3, &first), 0);
    EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_BOARD, 7, transfers, 3, &other), 0);
    EXPECT_EQ(peach2_chain_select(handle, 0, other), -EINVAL); // nothing was prepared
    EXPECT_EQ(peach2_chain_prepare(handle, 0, first, &notify), 0);
    EXPECT_EQ(peach2_chain_select(handle, 0, other), 0);
    EXPECT_EQ(machine_register(&m, 0x418, 8), 7 * 32);
    EXPECT_EQ(peach2_dma_start(handle, 0), 0);
    EXPECT_EQ(machine_last_write(&m, 0x414)->value, 0x35); // START, mode 2, NOTIFY_LOCAL, NOTIFY_REMOTE
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverChain, RefusesWhatDoesNotFit)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    peach2_chain_t *chain = NULL;
    const struct peach2_transfer long_one = {.bytes = 0x1000000};
    EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_BOARD, 1022, transfers, 3, &chain), -ENOSPC);
    EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_BOARD, UINT32_MAX, transfers, 3, &chain), -ENOSPC);
    EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_HOST, 0, transfers, 0, &chain), -EINVAL);
    EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_HOST, 0, &long_one, 1, &chain), -ERANGE);
    m.pinned_left = 0;
    EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_HOST, 0, transfers, 3, &chain), -ENOMEM);
    EXPECT_NULL(chain);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverChain, RelinksADescriptorOnTheBoard)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    peach2_chain_t *chain = NULL;
    EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_BOARD, 8, transfers, 3, &chain), 0);
    EXPECT_EQ(peach2_chain_relink(chain, 2, 0), 0);
    struct words words = board_descriptor(&m, 10);
    EXPECT_EQ(words.length, 0xfffffc);
    EXPECT_EQ(words.next, 8 * 32);
    EXPECT_EQ(words.source, 0x102000);
    EXPECT_EQ(peach2_chain_relink(chain, 3, 0), -EINVAL);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverChain, TakesAsManyTransfersAsItWasCreatedWithWhenItIsRewritten)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    peach2_chain_t *chain = NULL;
    EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_BOARD, 8, transfers, 2, &chain), 0);
    EXPECT_EQ(peach2_chain_rewrite(chain, &transfers[1], 1), 0);
    EXPECT_EQ(board_descriptor(&m, 8).length, 64 | LAST);
    EXPECT_EQ(peach2_chain_rewrite(chain, transfers, 2), 0); // as many as at first
    EXPECT_EQ(board_descriptor(&m, 8).length, 4096);
    EXPECT_EQ(board_descriptor(&m, 9).length, 64 | LAST);
    EXPECT_EQ(peach2_chain_rewrite(chain, transfers, 3), -ENOSPC);
    EXPECT_EQ(peach2_chain_rewrite(chain, transfers, 0), -EINVAL);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverChain, ReleasesChainsInAnyOrder)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    peach2_chain_t *chains[3];
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_HOST, 0, transfers, 3, &chains[i]), 0);
    }
    peach2_chain_destroy(chains[1]);
    EXPECT_EQ(m.pinned_live, 2);
    peach2_chain_destroy(chains[0]);
    EXPECT_EQ(m.pinned_live, 1);
    peach2_close(handle);
    machine_fini(&m);
}

// From docs/decisions/0005-whole-board.md: bits 175:160 width, 191:176 and 235:232 source pitch, 255:236 destination
// pitch, all in DWs; 156 wait, 157 interrupt, 158 stride, 159 last.
TEST(DriverChain, LaysOutRowsAndFlagsAsTheBoardReadsThem)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    peach2_chain_t *chain = NULL;
    const struct peach2_transfer rows[2] = {
        {.source = 0x100000,
         .destination = 0x9000200000,
         .bytes = 4096,
         .width = 0x3fffc,
         .source_pitch = 0x3ffffc,
         .destination_pitch = 0x123450,
         .flags = PEACH2_TRANSFER_FENCE},
        {.source = 0x100000, .destination = 0x9000200000, .bytes = 64, .flags = PEACH2_TRANSFER_INTERRUPT}};
    EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_BOARD, 5, rows, 2, &chain), 0);
    struct words words = board_descriptor(&m, 5);
    EXPECT_EQ(words.length, 0x50001000);
    EXPECT_EQ(words.reserved, 0xffffffff);                           // pitch 0xfffff, its low half; width 0xffff
    EXPECT_EQ(words.next, 0x48d14ull << 44 | 0xfull << 40 | 32 * 6); // destination pitch, high source pitch, next
    words = board_descriptor(&m, 6);
    EXPECT_EQ(words.length, 0xa0000040);
    EXPECT_EQ(words.reserved, 0);
    EXPECT_EQ(words.next, 0);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverChain, RefusesRowsThatADescriptorCannotCarry)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    peach2_chain_t *chain = NULL;
    const struct peach2_transfer good = {.bytes = 64, .width = 16, .source_pitch = 32, .destination_pitch = 32};
    const struct {
        uint32_t width, source_pitch, destination_pitch;
        int error;
    } bad[] = {{14, 32, 32, -EINVAL},      {16, 34, 32, -EINVAL},       {16, 32, 33, -EINVAL},
               {0x40000, 32, 32, -ERANGE}, {16, 0x400000, 32, -ERANGE}, {16, 32, 0x400000, -ERANGE}};
    unsigned before = m.log_count;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct peach2_transfer transfer = good;
        transfer.width = bad[i].width;
        transfer.source_pitch = bad[i].source_pitch;
        transfer.destination_pitch = bad[i].destination_pitch;
        EXPECT_EQ(peach2_chain_create(handle, PEACH2_CHAIN_BOARD, 0, &transfer, 1, &chain), bad[i].error);
        EXPECT_EQ(peach2_dma_prepare(handle, 0, &transfer, NULL), -EINVAL);
    }
    EXPECT_EQ(m.log_count, before); // the board was not touched
    peach2_close(handle);
    machine_fini(&m);
}
