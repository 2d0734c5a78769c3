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

TEST(Progress, SaysHowMuchTimeIsLeft)
{
    static const struct {
        uint64_t elapsed_ms;
        unsigned permille;
        const char *text;
    } rows[] = {{5000, 0, "dma"},
                {5000, 1000, "dma"},
                {2000, 500, "3 s left  dma"},
                {1000, 10, "2 min left  dma"},
                {60000, 250, "4 min left  dma"},
                {3600000, 100, "10 h left  dma"}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[64];
        TEST_TRACE("row %u", i);
        cli_progress_label(text, sizeof text, rows[i].elapsed_ms, rows[i].permille, "dma");
        EXPECT_STREQ(text, rows[i].text);
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
