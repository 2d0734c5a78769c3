#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/keys.h"

static char *form_printed(const char *configs_dir, const char *filter, enum scn_params_form form,
                          enum sim_status status)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    EXPECT_EQ(scn_print_params(out, configs_dir, filter, form), status);
    fclose(out);
    return text;
}

static char *params_printed(const char *configs_dir, const char *filter, enum sim_status status)
{
    return form_printed(configs_dir, filter, SCN_PARAMS_TEXT, status);
}

static char *params(const char *configs_dir, const char *filter)
{
    return params_printed(configs_dir, filter, SIM_OK);
}

TEST(Params, ListsEveryKeyOfTheTable)
{
    char *text = params(NULL, NULL);
    for (size_t i = 0; scn_kinds[i] != NULL; i++) {
        for (size_t j = 0; j < scn_kinds[i]->key_count; j++) {
            const struct scn_key *key = &scn_kinds[i]->keys[j];
            char start[80];
            snprintf(start, sizeof start, "\n  %s ", key->name);
            if (key->unit != SCN_UNIT_EMBED) {
                EXPECT_CONTAINS(text, start);
                EXPECT_CONTAINS(text, key->doc);
            }
        }
    }
    free(text);
}

TEST(Params, ShowsUnitDefaultAndRange)
{
    char *text = params(NULL, "scenario.time_limit");
    EXPECT_CONTAINS(text, "time ");
    EXPECT_CONTAINS(text, "10 s ");
    EXPECT_CONTAINS(text, "1 ps .. 3600 s");
    EXPECT_LACKS(text, "silence_limit");
    free(text);
}

TEST(Params, ShowsValueAndSourceOfEachPreset)
{
    char *text = params(FIXTURE_CONFIGS, "host.m");
    EXPECT_CONTAINS(text, "xeon-e5-2670");
    EXPECT_CONTAINS(text, "256 B");
    EXPECT_CONTAINS(text, "source: hanawa2013 table 2");
    EXPECT_CONTAINS(text, "range 100 ns to 200 ns; assumption: what is left");
    EXPECT_LACKS(text, "dmac_read");
    free(text);
}

TEST(Params, ShowsWhatAPresetTakesFromTheOneItBuildsOn)
{
    char *text = params(TCASIM_SOURCE_DIR "/configs", "hca.mps");
    EXPECT_CONTAINS(text, "connectx-qdr             128 B          as connectx-ddr\n");
    EXPECT_CONTAINS(text, "connectx2-qdr            128 B          as connectx-ddr\n");
    EXPECT_CONTAINS(text, "connectx3-qdr            256 B          source: sato2015");
    free(text);
}

TEST(Params, PrintNothingForAFilterThatFitsNoKey)
{
    char *text = params_printed(FIXTURE_CONFIGS, "no-such-key", SIM_ERR_NOT_FOUND);
    EXPECT_STREQ(text, "");
    free(text);
}

TEST(Params, FindWordsThatMeanTheSame)
{
    char *text = params(FIXTURE_CONFIGS, "propagation");
    EXPECT_CONTAINS(text, "\n  flight ");
    EXPECT_LACKS(text, "\n  lanes ");
    free(text);
    text = params(FIXTURE_CONFIGS, "hanawa2013 table 2");
    EXPECT_CONTAINS(text, "\n  mps ");
    EXPECT_LACKS(text, "\n  title ");
    free(text);
}

TEST(Params, AreTablesOfMarkdown)
{
    char *text = form_printed(FIXTURE_CONFIGS, "host.m", SCN_PARAMS_MARKDOWN, SIM_OK);
    EXPECT_CONTAINS(text, "## host\n\n");
    EXPECT_CONTAINS(
        text, "| key | unit | default | range | meaning |\n|---|---|---|---|---|\n| `memory` | size | required | ");
    EXPECT_CONTAINS(text, "| `mps` | `xeon-e5-2670` | 256 B | source: hanawa2013 table 2");
    free(text);
    text = form_printed(FIXTURE_CONFIGS, "fidelity", SCN_PARAMS_MARKDOWN, SIM_OK);
    EXPECT_CONTAINS(text, "rtl \\| twin \\| flow"); // a cell, and not three
    free(text);
}

TEST(Params, AreJson)
{
    char *text = form_printed(FIXTURE_CONFIGS, "host.mps", SCN_PARAMS_JSON, SIM_OK);
    EXPECT_CONTAINS(text, "{\"kinds\":[\n{\"name\":\"host\",");
    EXPECT_CONTAINS(text, "{\"name\":\"mps\",\"unit\":\"size\",\"required\":true,");
    EXPECT_CONTAINS(text, "{\"preset\":\"xeon-e5-2670\",\"value\":\"256 B\",\"source\":\"hanawa2013 table 2");
    free(text);
}

TEST(Params, AreAPageOfTheManual)
{
    char *text = form_printed(NULL, NULL, SCN_PARAMS_MANUAL, SIM_OK);
    EXPECT_CONTAINS(text, ".SH \"host\"\n");
    EXPECT_CONTAINS(text, ".TP\n.B mps\n");
    free(text);
}

TEST(Params, SuggestTheNearestKey)
{
    EXPECT_STREQ(scn_key_suggest("flihgt"), "flight");
    EXPECT_STREQ(scn_key_suggest("board.dmac_raed_tags"), "dmac_read_tags");
    EXPECT_NULL(scn_key_suggest("no-such-key"));
}
