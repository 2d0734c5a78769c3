#include <string.h>

#include "sim/cli/progress.h"
#include "tests/shim/test.h"

TEST(Progress, BarFillsHalfTheLine)
{
    char line[256];
    cli_progress_line(line, sizeof line, 40, 500, "dma");
    EXPECT_STREQ(line, " 50 % [##########..........] dma");
    cli_progress_line(line, sizeof line, 40, 1000, "dma");
    EXPECT_STREQ(line, "100 % [####################] dma");
}

TEST(Progress, FitsAnyWidth)
{
    for (unsigned columns = 0; columns < 200; columns++) {
        char line[256];
        cli_progress_line(line, sizeof line, columns, 2000, "a series with quite a long name");
        EXPECT_BETWEEN(strlen(line), 0, columns);
    }
}

TEST(Progress, SaysNothingWhereItIsNotWanted)
{
    struct cli_progress progress;
    cli_progress_init(&progress, false);
    progress.start_ms -= 10000;
    cli_progress_update(&progress, 500, "dma");
    EXPECT_FALSE(progress.shown);
    cli_progress_fini(&progress);
}
