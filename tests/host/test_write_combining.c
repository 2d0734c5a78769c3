#include "models/host/write_combining.h"

#include <string.h>

#include "tests/shim/test.h"

static const uint8_t bytes[128] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

TEST(WriteCombining, TakesOnlyWhatBelongsToTheLine)
{
    struct host_line line = {0};
    EXPECT_EQ(host_line_store(&line, 0x1030, bytes, 40), 16);
    EXPECT_EQ(line.address, 0x1000);
    EXPECT_TRUE(host_line_holds(&line, 0x103f));
    EXPECT_FALSE(host_line_holds(&line, 0x1040));
    EXPECT_FALSE(host_line_full(&line));
}

TEST(WriteCombining, IsFullAfterEveryByteWasWritten)
{
    struct host_line line = {0};
    EXPECT_EQ(host_line_store(&line, 0x1000, bytes, 63), 63);
    EXPECT_FALSE(host_line_full(&line));
    EXPECT_EQ(host_line_store(&line, 0x103f, bytes, 1), 1);
    EXPECT_TRUE(host_line_full(&line));
}

TEST(WriteCombining, GivesAFullLineBackAsOneRun)
{
    struct host_line line = {0};
    struct host_run run;
    (void)host_line_store(&line, 0x2000, bytes, 64);
    EXPECT_TRUE(host_line_take_run(&line, &run));
    EXPECT_EQ(run.address, 0x2000);
    EXPECT_EQ(run.bytes, 64);
    EXPECT_MEMEQ(run.data, bytes, 64);
    EXPECT_FALSE(host_line_take_run(&line, &run));
}

TEST(WriteCombining, GivesAPartialLineBackAsContiguousRunsFromTheLowest)
{
    struct host_line line = {0};
    struct host_run run;
    (void)host_line_store(&line, 0x203c, bytes + 4, 4);
    (void)host_line_store(&line, 0x2008, bytes, 4);
    (void)host_line_store(&line, 0x200c, bytes + 8, 1);
    EXPECT_TRUE(host_line_take_run(&line, &run));
    EXPECT_EQ(run.address, 0x2008);
    EXPECT_EQ(run.bytes, 5);
    EXPECT_EQ(run.data[4], 9);
    EXPECT_TRUE(host_line_take_run(&line, &run));
    EXPECT_EQ(run.address, 0x203c);
    EXPECT_EQ(run.bytes, 4);
    EXPECT_EQ(run.data[0], 5);
    EXPECT_FALSE(host_line_take_run(&line, &run));
    EXPECT_FALSE(host_line_holds(&line, 0x2008));
}

TEST(WriteCombining, KeepsTheLastOfTwoStoresToAByte)
{
    struct host_line line = {0};
    struct host_run run;
    (void)host_line_store(&line, 0x2000, bytes, 8);
    (void)host_line_store(&line, 0x2004, bytes, 4);
    EXPECT_TRUE(host_line_take_run(&line, &run));
    EXPECT_EQ(run.bytes, 8);
    EXPECT_EQ(run.data[3], 4);
    EXPECT_EQ(run.data[4], 1);
}
