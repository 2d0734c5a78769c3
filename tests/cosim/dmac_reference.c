// The expected memories and ends of channels, compared with the actual ones.
#include <string.h>

#include "tests/cosim/dmac.h"

static void read_board(struct dmac *dmac)
{
    for (uint32_t i = 0; i < BOARD_BYTES; i += 4096) {
        chip_read(dmac->chip, BAR_REGISTERS, PEACH2_MEMORY_BASE + i, 4096, dmac->spaces[SPACE_BOARD].got + i);
    }
}

static void compare(struct dmac *dmac, bool partly)
{
    static const char *const names[SPACE_COUNT] = {"host", "GPU", "east", "west", "south", "board"};
    dmac_run(dmac);
    read_board(dmac);
    for (unsigned i = 0; i < SPACE_COUNT; i++) {
        const struct dmac_space *space = &dmac->spaces[i];
        for (uint32_t k = 0; k < space->bytes; k++) {
            if (space->got[k] != space->want[k] && !(partly && space->got[k] == space->before[k])) {
                FAIL("%s: byte 0x%x is 0x%02x and should be 0x%02x", names[i], k, space->got[k], space->want[k]);
                break;
            }
        }
    }
}

void dmac_compare(struct dmac *dmac)
{
    compare(dmac, false);
}

void dmac_compare_partly(struct dmac *dmac)
{
    compare(dmac, true);
    for (unsigned i = 0; i < SPACE_COUNT; i++) { // from here on, the actual contents are expected
        memcpy(dmac->spaces[i].want, dmac->spaces[i].got, dmac->spaces[i].bytes);
    }
}

void dmac_expect_end(struct dmac *dmac, const struct dmac_order *order, unsigned error)
{
    uint32_t status = dmac_status(dmac, order->channel);
    uint64_t word = (uint64_t)status << 32 | order->value;
    EXPECT_EQ(status & ~(uint32_t)PEACH2_DMAC_STATUS_IGNORED_STARTS_MASK,
              PEACH2_DMAC_STATUS_DONE_MASK | error << PEACH2_DMAC_STATUS_ERROR_LSB);
    if (order->notify_local) {
        dmac_expect_bytes(dmac, order->local, sizeof word, &word);
    }
    if (order->notify_remote && error == PEACH2_DMA_OK) {
        dmac_expect_bytes(dmac, order->remote, sizeof word, &word);
    }
}

void dmac_expect_works(struct dmac *dmac, unsigned channel)
{
    struct dmac_order order = dmac_order(channel, dmac_copy(0x123c, SPACE_SOUTH, 0xf00c, 600));
    memset(dmac->rules, 0, sizeof dmac->rules);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    dmac_expect(dmac, &order.transfer);
    dmac_compare(dmac);
}

void dmac_expect_refused(struct dmac *dmac, const struct dmac_order *order, unsigned error)
{
    dmac_start(dmac, order);
    dmac_expect_end(dmac, order, error);
    EXPECT_EQ(dmac_completed(dmac, order->channel), 0);
    dmac_compare(dmac);
    dmac_expect_works(dmac, order->channel);
}
