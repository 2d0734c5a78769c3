#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Locations differ between the scenario and its resolved text; nothing else may.
static void forget_locations(struct scn_scenario *scenario)
{
    scenario->directory = NULL;
    for (uint32_t i = 0; i < SCN_CHECKS_MAX; i++) {
        scenario->expects[i].line = 0;
        scenario->expects[i].column = 0;
        scenario->compares[i].line = 0;
        scenario->compares[i].column = 0;
    }
    for (uint32_t i = 0; i < SCN_PANELS_MAX; i++) {
        scenario->panels[i].line = 0;
        scenario->panels[i].column = 0;
    }
}

static void expect_round_trip(const char *path, const char *set)
{
    struct fixture first, second;
    fixture_load_file(&first, path, FIXTURE_CONFIGS, set);
    EXPECT_STREQ(fixture_message(&first), "");
    ASSERT_EQ(first.status, SIM_OK);
    char *text = fixture_resolved(first.scenario);
    fixture_load_text(&second, text, NULL);
    EXPECT_STREQ(fixture_message(&second), "");
    ASSERT_EQ(second.status, SIM_OK);
    char *again = fixture_resolved(second.scenario);
    EXPECT_STREQ(again, text);
    forget_locations(first.scenario);
    forget_locations(second.scenario);
    EXPECT_MEMEQ(second.scenario, first.scenario, sizeof *first.scenario);
    free(text);
    free(again);
    fixture_fini(&first);
    fixture_fini(&second);
}

TEST(Resolved, LoadsToAnEqualScenarioAndEqualText)
{
    expect_round_trip(FIXTURE_FULL, NULL);
}

TEST(Resolved, KeepsWhatTheCommandLineSet)
{
    expect_round_trip(FIXTURE_FULL, "nodes.*.board.dmac_read_tags=3");
}

// As those for `tcasim exec` are.
TEST(Resolved, LoadsWithoutRuns)
{
    expect_round_trip(TCASIM_SOURCE_DIR "/tests/dropin/ibsim0.yaml", NULL);
}

TEST(Resolved, KeepsTextsThatLookLikeSomethingElse)
{
    expect_round_trip(FIXTURE_FULL, "title=- {a: \"b\\c\"} # 'd' \xc3\xa9");
}

// The default of ranks is the one number 0.
TEST(Resolved, KeepsAListThatBeginsWithTheDefault)
{
    expect_round_trip(TCASIM_SOURCE_DIR "/tests/scenario/verbs.yaml", "runs.barrier.ranks=[0, 2]");
}

TEST(Resolved, NamesEveryKeyWithItsUnitAndNoPreset)
{
    struct fixture fixture;
    fixture_load_file(&fixture, FIXTURE_FULL, FIXTURE_CONFIGS, NULL);
    ASSERT_EQ(fixture.status, SIM_OK);
    char *text = fixture_resolved(fixture.scenario);
    EXPECT_CONTAINS(text, "\n    host:\n      memory: 8 GiB\n      mps: 256 B\n");
    EXPECT_CONTAINS(text, "      window_base: 0x8000000000\n");
    EXPECT_CONTAINS(text, "  - from: node0.E\n    to: node1.W\n    generation: Gen2\n    lanes: x8\n");
    EXPECT_CONTAINS(text, "    bytes: [4 B, 1 KiB, 4000 B]\n");
    EXPECT_LACKS(text, "preset");
    free(text);
    fixture_fini(&fixture);
}

TEST(Resolved, ReportsAFullDisk)
{
    struct fixture fixture;
    fixture_load_file(&fixture, FIXTURE_FULL, FIXTURE_CONFIGS, NULL);
    ASSERT_EQ(fixture.status, SIM_OK);
    FILE *out = fopen("/dev/full", "w");
    ASSERT_NOT_NULL(out);
    setbuf(out, NULL);
    EXPECT_EQ(scn_write_resolved(fixture.scenario, out), SIM_ERR_IO);
    fclose(out);
    fixture_fini(&fixture);
}
