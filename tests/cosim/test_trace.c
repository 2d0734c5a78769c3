// Waveforms.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
static uint64_t run_board(const char *path)
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
    cosim_peach2_destroy(board);
    chip_destroy(chip);
    return cycles;
}

TEST(Trace, IsWrittenAndChangesNothing)
{
    char path[] = "/tmp/tcasim-trace-XXXXXX";
    int descriptor = mkstemp(path);
    ASSERT_GE(descriptor, 0);
    close(descriptor);
    EXPECT_EQ(run_board(path), run_board(NULL));
    FILE *file = fopen(path, "rb");
    ASSERT_NOT_NULL(file);
    fseek(file, 0, SEEK_END);
    EXPECT_GT(ftell(file), 1000);
    fclose(file);
    remove(path);
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
