// Breakdowns: rows, sums, files.
#include "sim/report/breakdown.h"

#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

static const struct sim_work call = {"library", "calls", false};
static const struct sim_work serialised = {"cable", "serialisation", false};
static const struct sim_work wire = {"PCIe", "serialisation", false};
static const struct sim_work fetch_begins = {"descriptor", "fetch", true};
static const struct sim_work fetch_ends = {NULL, "fetch", true};

static const struct breakdown_case measured = {"send, small", "node0", 8, 2, 100};

static const struct sim_piece good[] = {
    {"node0.core", &call, 1000, 1010},
    {"node0.core", &call, 1010, 1020},
    {"node0.chip", &fetch_begins, 1020, 1020},
    {"node0.slot.0", &wire, 1020, 1030},
    {"node0.chip", &fetch_ends, 1030, 1030},
    {"node0.E-node1.W.1", &serialised, 1030, 1075},
    {NULL, NULL, 1075, 1075},
    {"node1.core", &call, 1075, 1100},
};
enum { GOOD = sizeof good / sizeof good[0] };

static enum sim_status add(breakdown_t *breakdown, const struct sim_piece *pieces, size_t count, char error[256])
{
    return breakdown_add(breakdown, &measured, pieces, count, error, 256);
}

TEST(Breakdown, IsARowForEachPieceInOrderOfTime)
{
    struct fixture fixture;
    breakdown_t *breakdown;
    char error[256] = "";
    fixture_create(&fixture);
    ASSERT_EQ(breakdown_create(&breakdown), SIM_OK);
    EXPECT_EQ(add(breakdown, good, GOOD, error), SIM_OK);
    EXPECT_EQ(breakdown_write(breakdown, fixture.directory, "Title", error, sizeof error), SIM_OK);
    char *text = fixture_read(&fixture, ".", "breakdown.csv");
    EXPECT_STREQ(text, "series,bytes,operations,part,detail,component,node,begin_ps,end_ps,duration_ps\n"
                       "\"send, small\",8,2,library,calls,node0.core,node0,0,20,20\n"
                       "\"send, small\",8,2,descriptor,PCIe: serialisation,node0.slot.0,node0,20,30,10\n"
                       "\"send, small\",8,2,cable,serialisation,node0.E-node1.W.1,node1,30,75,45\n"
                       "\"send, small\",8,2,remote library,calls,node1.core,node1,75,100,25\n");
    free(text);
    breakdown_destroy(breakdown);
    fixture_destroy(&fixture);
}

TEST(Breakdown, ASeriesBeginsWithARowOfItsOwn)
{
    static const struct breakdown_case cases[] = {{"first", "node0", 8, 1, 10}, {"second", "node0", 8, 1, 20}};
    static const struct sim_piece first = {"node0.core", &call, 1000, 1010}, second = {"node0.core", &call, 0, 20};
    struct fixture fixture;
    breakdown_t *breakdown;
    char error[256] = "";
    fixture_create(&fixture);
    ASSERT_EQ(breakdown_create(&breakdown), SIM_OK);
    EXPECT_EQ(breakdown_add(breakdown, &cases[0], &first, 1, error, sizeof error), SIM_OK);
    EXPECT_EQ(breakdown_add(breakdown, &cases[1], &second, 1, error, sizeof error), SIM_OK);
    EXPECT_EQ(breakdown_write(breakdown, fixture.directory, "Title", error, sizeof error), SIM_OK);
    char *text = fixture_read(&fixture, ".", "breakdown.csv");
    EXPECT_CONTAINS(text, "\nfirst,8,1,library,calls,node0.core,node0,0,10,10\n"
                          "second,8,1,library,calls,node0.core,node0,0,20,20\n");
    free(text);
    breakdown_destroy(breakdown);
    fixture_destroy(&fixture);
}

TEST(Breakdown, RefusesPiecesThatDoNotAddUpToTheTotal)
{
    breakdown_t *breakdown;
    char error[256];
    ASSERT_EQ(breakdown_create(&breakdown), SIM_OK);
    EXPECT_EQ(add(breakdown, good, GOOD - 1, error), SIM_ERR_RANGE);
    EXPECT_STREQ(error, "series 'send, small': the pieces add up to 75 ps and the program measured 100 ps");
    breakdown_destroy(breakdown);
}

TEST(Breakdown, RefusesAGapEvenWhereTheSumIsRight)
{
    struct sim_piece pieces[GOOD];
    breakdown_t *breakdown;
    char error[256];
    memcpy(pieces, good, sizeof good);
    pieces[3].end_ps = 1020;          // 10 less here,
    pieces[GOOD - 1].begin_ps = 1065; // and 10 more there
    ASSERT_EQ(breakdown_create(&breakdown), SIM_OK);
    EXPECT_EQ(add(breakdown, pieces, GOOD, error), SIM_ERR_RANGE);
    EXPECT_STREQ(error, "series 'send, small': a piece begins at 30 ps and the one before ends at 20 ps");
    breakdown_destroy(breakdown);
}

static char *printed(const breakdown_t *breakdown)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    breakdown_print(breakdown, out);
    fclose(out);
    return text;
}

TEST(Breakdown, PrintsWhatOneOperationTakesByPart)
{
    breakdown_t *breakdown;
    char error[256];
    ASSERT_EQ(breakdown_create(&breakdown), SIM_OK);
    EXPECT_EQ(add(breakdown, good, GOOD, error), SIM_OK);
    char *text = printed(breakdown);
    EXPECT_CONTAINS(text, "library                 0.010\n"); // 20 ps of two operations
    EXPECT_CONTAINS(text, "latency                 0.050\n");
    EXPECT_LACKS(text, "other");
    free(text);
    breakdown_destroy(breakdown);
}

TEST(Breakdown, WritesATimelineWithAProcessForEachNode)
{
    struct fixture fixture;
    breakdown_t *breakdown;
    char error[256] = "", path[256];
    fixture_create(&fixture);
    snprintf(path, sizeof path, "%s/t.json", fixture.directory);
    ASSERT_EQ(breakdown_create(&breakdown), SIM_OK);
    EXPECT_EQ(add(breakdown, good, GOOD, error), SIM_OK);
    EXPECT_EQ(breakdown_timeline_write(breakdown, path, error, sizeof error), SIM_OK);
    char *text = fixture_read(&fixture, ".", "t.json");
    EXPECT_CONTAINS(text, "\"name\":\"process_name\",\"pid\":2,\"tid\":3,\"args\":{\"name\":\"send, small: node1\"}");
    EXPECT_CONTAINS(text, "\"name\":\"thread_name\",\"pid\":2,\"tid\":3,\"args\":{\"name\":\"node0.E-node1.W.1\"}");
    EXPECT_CONTAINS(
        text, "{\"ph\":\"X\",\"ts\":0.000030,\"pid\":2,\"tid\":3,\"dur\":0.000045,\"name\":\"serialisation\","
              "\"cat\":\"cable\"},\n"
              "{\"ph\":\"t\",\"ts\":0.000030,\"pid\":2,\"tid\":3,\"name\":\"cause\",\"cat\":\"cause\",\"id\":1},\n");
    free(text);
    breakdown_destroy(breakdown);
    fixture_destroy(&fixture);
}
