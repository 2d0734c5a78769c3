// Waveforms.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gtkwave/fstapi.h>

#include "tests/cosim/chip.h"

static void ignore_tx(void *ctx, unsigned port, pcie_tlp_t *tlp)
{
    (void)ctx;
    (void)port;
    pcie_tlp_unref(tlp);
}

static void ignore_taken(void *ctx, unsigned port, pcie_tlp_t *tlp)
{
    ignore_tx(ctx, port, tlp);
}

// Another board does some work, with a waveform in `path` unless that is NULL. Returns its cycles.
static uint64_t run_board(const char *path, uint32_t counters[PEACH2_COUNTER_REGISTERS])
{
    struct chip *chip = chip_create(NULL);
    struct cosim_peach2_config config = chip_config();
    const struct cosim_peach2_ops ops = {ignore_tx, ignore_taken};
    cosim_peach2_t *board;
    EXPECT_EQ(cosim_peach2_create(chip->clock, chip->pool, "board", &config, &ops, NULL, path, &board), SIM_OK);
    cosim_peach2_rx(board, PORT_N, BAR_REGISTERS, pcie_tlp_write(chip->pool, 0, 0x10003, 200, NULL));
    cosim_peach2_rx(board, PORT_N, BAR_REGISTERS, pcie_tlp_read(chip->pool, 0, 1, 0x10000, 1000));
    chip_run(chip);
    uint64_t cycles = cosim_peach2_cycles(board);
    cosim_peach2_counters(board, counters);
    cosim_peach2_destroy(board);
    chip_destroy(chip);
    return cycles;
}

static bool path_make(char *path)
{
    int descriptor = mkstemp(path);
    if (!EXPECT_GE(descriptor, 0)) {
        return false;
    }
    close(descriptor);
    return true;
}

TEST(Trace, IsWrittenAndChangesNothing)
{
    char path[] = "/tmp/tcasim-trace-XXXXXX";
    uint32_t traced[PEACH2_COUNTER_REGISTERS], plain[PEACH2_COUNTER_REGISTERS];
    ASSERT_TRUE(path_make(path));
    EXPECT_EQ(run_board(path, traced), run_board(NULL, plain));
    EXPECT_MEMEQ(traced, plain, sizeof plain);
    EXPECT_EQ(traced[PEACH2_COUNTER_TLPS_IN_N / 4], 2); // a write and a read
    FILE *file = fopen(path, "rb");
    ASSERT_NOT_NULL(file);
    fseek(file, 0, SEEK_END);
    EXPECT_GT(ftell(file), 1000);
    fclose(file);
    remove(path);
}

struct clock_changes {
    unsigned rises, falls, misplaced;
};

// A change of the clock in a waveform.
static void clock_changed(void *user, uint64_t time_ps, fstHandle signal, const unsigned char *value)
{
    struct clock_changes *changes = user;
    (void)signal;
    changes->rises += *value == '1';
    changes->falls += *value == '0';
    changes->misplaced += time_ps % CHIP_PERIOD_PS != (*value == '1' ? 0 : CHIP_PERIOD_PS / 2);
}

static fstHandle signal_find(void *reader, const char *name)
{
    for (struct fstHier *entry = fstReaderIterateHier(reader); entry != NULL; entry = fstReaderIterateHier(reader)) {
        if (entry->htyp == FST_HT_VAR && strcmp(entry->u.var.name, name) == 0) {
            return entry->u.var.handle;
        }
    }
    return 0;
}

TEST(Trace, ShowsTheClockHighInTheFirstHalfOfACycleAndLowInTheSecond)
{
    char path[] = "/tmp/tcasim-trace-XXXXXX";
    uint32_t counters[PEACH2_COUNTER_REGISTERS];
    struct clock_changes changes = {0};
    ASSERT_TRUE(path_make(path));
    uint64_t cycles = run_board(path, counters);
    void *reader = fstReaderOpen(path);
    ASSERT_NOT_NULL(reader);
    fstHandle clock = signal_find(reader, "clk_i");
    EXPECT_NE(clock, 0);
    fstReaderSetFacProcessMask(reader, clock);
    EXPECT_NE(fstReaderIterBlocks(reader, clock_changed, &changes, NULL), 0);
    fstReaderClose(reader);
    remove(path);
    EXPECT_EQ(changes.rises, cycles);
    EXPECT_EQ(changes.falls, cycles);
    EXPECT_EQ(changes.misplaced, 0);
}

TEST(Trace, NeverReplacesWhatIsNoFile)
{
    struct chip *chip = chip_create(NULL);
    struct cosim_peach2_config config = chip_config();
    const struct cosim_peach2_ops ops = {ignore_tx, ignore_taken};
    char directory[] = "/tmp/tcasim-trace-XXXXXX";
    cosim_peach2_t *board = NULL;
    ASSERT_NOT_NULL(mkdtemp(directory));
    EXPECT_EQ(cosim_peach2_create(chip->clock, chip->pool, "board", &config, &ops, NULL, directory, &board),
              SIM_ERR_IO);
    EXPECT_NULL(board);
    EXPECT_EQ(rmdir(directory), 0);
    chip_destroy(chip);
}
