// Numbers compared with a baseline file, and the file itself.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe.h"
#include "sim/report/baseline.h"
#include "tests/shim/test.h"

#define ENTRY(scenario, number) "- scenario: \"" scenario "\"\n  expect: \"it\"\n  numbers: [" number "]\n"

static void file_put(const struct fixture *fixture, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/b.yaml", fixture->directory);
    FILE *out = fopen(path, "w");
    fputs(text, out);
    fclose(out);
}

// A number that the client printed is within this tolerance of the one in b.yaml.
static void start(struct fixture *fixture, const char *printed, double within_percent)
{
    static char directory[256];
    fixture_create(fixture);
    struct scn_check *check = observe_add(fixture, "client", "took (-?[0-9.]+) us", NULL);
    snprintf(check->observed.of, sizeof check->observed.of, "b.yaml");
    check->observed.within_percent = within_percent;
    snprintf(directory, sizeof directory, "%s/", fixture->directory);
    fixture->scenario->directory = directory;
    observe_printed(fixture, printed);
}

static void baseline_is(const char *file, const char *printed, double within_percent, const char *expected)
{
    struct fixture fixture;
    start(&fixture, printed, within_percent);
    file_put(&fixture, file);
    observe_is(&fixture, expected);
    fixture_destroy(&fixture);
}

TEST(Baseline, HoldsNumbersWithinItsPercentage)
{
    baseline_is(ENTRY("example", "2"), "took 2.04 us\n", 2, ""); // no binary fraction
    baseline_is(ENTRY("example", "2"), "took 1.96 us\n", 2, "");
    baseline_is(ENTRY("example", "2"), "took 2.0 us\n", 0, "");
    baseline_is(ENTRY("example", "2"), "took 2.041 us\n", 2,
                "2.041 is not within 2 % of 2 in b.yaml: +2.05 %, in line 1: took 2.041 us");
    baseline_is(ENTRY("example", "2"), "took 2.000001 us\n", 0,
                "2.000001 is not 2, as in b.yaml: +0.00 %, in line 1: took 2.000001 us");
}

TEST(Baseline, HoldsANegativeNumberWithinItsPercentage)
{
    baseline_is(ENTRY("example", "-2"), "took -2.04 us\n", 2, "");
    baseline_is(ENTRY("example", "-2"), "took -1.96 us\n", 2, "");
    baseline_is(ENTRY("example", "-2"), "took -2.041 us\n", 2,
                "-2.041 is not within 2 % of -2 in b.yaml: -2.05 %, in line 1: took -2.041 us");
}

TEST(Baseline, WantsAsManyNumbersAsThereWere)
{
    baseline_is(ENTRY("example", "2, 3"), "took 2 us\ntook 3 us\n", 0, "");
    struct fixture fixture;
    start(&fixture, "took 2 us\n", 0);
    file_put(&fixture, ENTRY("example", "2, 3"));
    char text[512];
    snprintf(text, sizeof text, "1 number was found, but 2 in %s/b.yaml", fixture.directory);
    observe_is(&fixture, text);
    fixture_destroy(&fixture);
}

static void message_contains(const struct fixture *fixture, const char *part)
{
    struct report_outcomes outcomes;
    report_outcomes_make(fixture->report, 0, &outcomes);
    EXPECT_EQ(outcomes.failed, 1);
    EXPECT_CONTAINS(outcomes.items[0].message, part);
    report_outcomes_free(&outcomes);
}

TEST(Baseline, WithoutFileOrEntrySaysHowToMakeThem)
{
    struct fixture fixture;
    start(&fixture, "took 2 us\n", 0);
    message_contains(&fixture, "there is no baseline file ");
    message_contains(&fixture, "; the same command with --update-baseline makes it");
    file_put(&fixture, ENTRY("other", "2"));
    message_contains(&fixture, "b.yaml has no numbers for it; the same command with --update-baseline records them");
    fixture_destroy(&fixture);
}

TEST(Baseline, RefusesWhatIsNoBaselineWithItsPlace)
{
    static const char *const wrong[][2] = {
        {"a: b\n", "b.yaml:1:1: expected a list of {scenario, expect, numbers}, found a mapping"},
        {"- 7\n", "b.yaml:1:3: expected {scenario, expect, numbers}, found a single value"},
        {"- {scenario: a, expect: b, numbers: [x]}\n", "b.yaml:1:38: numbers: 'x' is not a number"},
        {"- {scenario: a, expect: b, numbers: [.inf]}\n", "numbers: '.inf' is not a number"},
        {"- {scenario: a, expect: b, numbers: 3}\n", "b.yaml:1:37: an entry needs numbers: with a list"},
        {"- {scenario: a, numbers: [3]}\n", "b.yaml:1:3: an entry needs expect: with a text"},
        {"- {scenario: a, expect: b, numbers: [3], c: d}\n", "b.yaml:1:42: unknown key 'c' in an entry"},
        {ENTRY("a", "1") ENTRY("a", "2"), "b.yaml:4:3: 'it' of 'a' appears twice"},
        {"- {scenario: [a\n", "b.yaml:2:1: "},
        {"\x00\x01", ""},
    };
    struct fixture fixture;
    start(&fixture, "took 2 us\n", 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        file_put(&fixture, wrong[i][0]);
        message_contains(&fixture, "the baseline file cannot be used: ");
        message_contains(&fixture, wrong[i][1]);
    }
    fixture_destroy(&fixture);
}

// Records, and returns what was printed; to be freed.
static char *recorded(const struct fixture *fixture)
{
    struct report_outcomes outcomes;
    char *text = NULL, error[512] = "";
    size_t size = 0;
    FILE *log = open_memstream(&text, &size);
    report_outcomes_make(fixture->report, REPORT_EXPECT_RECORD, &outcomes);
    EXPECT_EQ(outcomes.failed, 0);
    EXPECT_EQ(report_outcomes_record(&outcomes, "example", log, error, sizeof error), SIM_OK);
    EXPECT_STREQ(error, "");
    fclose(log);
    report_outcomes_free(&outcomes);
    return text;
}

static void recorded_is(const struct fixture *fixture, const char *expected)
{
    char *text = recorded(fixture), *said = strstr(text, "b.yaml: ");
    ASSERT_NOT_NULL(said);
    EXPECT_STREQ(said, expected);
    free(text);
}

TEST(Baseline, RecordingMakesTheFileAndSaysWhatChanged)
{
    struct fixture fixture;
    start(&fixture, "took 2 us\n", 0);
    recorded_is(&fixture, "b.yaml: 'it' of example: [2], new\n");
    observe_is(&fixture, "");
    recorded_is(&fixture, "b.yaml: 'it' of example: [2], as before\n");
    observe_printed(&fixture, "took 2.5 us\n");
    recorded_is(&fixture, "b.yaml: 'it' of example: [2] -> [2.5] (+25.00 %)\n");
    observe_printed(&fixture, "took 2.5 us\ntook 1e-7 us\n");
    snprintf(fixture.scenario->expects[0].observed.match, SCN_TEXT_MAX, "took ([0-9.e-]+) us");
    recorded_is(&fixture, "b.yaml: 'it' of example: [2.5] -> [2.5, 1e-07]\n");
    observe_is(&fixture, "");
    fixture_destroy(&fixture);
}

TEST(Baseline, RecordingKeepsTheEntriesOfOthersAndSorts)
{
    struct fixture fixture;
    start(&fixture, "took 2 us\n", 0);
    file_put(&fixture, ENTRY("zoo", "7.25") ENTRY("ant", "1, 2"));
    free(recorded(&fixture));
    char *text = fixture_read(&fixture, ".", "b.yaml");
    ASSERT_NOT_NULL(text);
    char *entries = strchr(text, '\n') + 1; // after the comment
    EXPECT_STREQ(entries, ENTRY("ant", "1, 2") ENTRY("example", "2") ENTRY("zoo", "7.25"));
    free(text);
    fixture_destroy(&fixture);
}

TEST(Baseline, RecordingLeavesABrokenFileAlone)
{
    struct fixture fixture;
    struct report_outcomes outcomes;
    char error[512] = "";
    start(&fixture, "took 2 us\n", 0);
    file_put(&fixture, "a: b\n");
    report_outcomes_make(fixture.report, REPORT_EXPECT_RECORD, &outcomes);
    EXPECT_EQ(report_outcomes_record(&outcomes, "example", stderr, error, sizeof error), SIM_ERR_INVALID);
    EXPECT_CONTAINS(error, "b.yaml:1:1: ");
    report_outcomes_free(&outcomes);
    char *text = fixture_read(&fixture, ".", "b.yaml");
    EXPECT_STREQ(text, "a: b\n");
    free(text);
    fixture_destroy(&fixture);
}

TEST(Baseline, NothingIsTakenForItWithoutANumber)
{
    struct fixture fixture;
    struct report_outcomes outcomes;
    start(&fixture, "nothing\n", 0);
    report_outcomes_make(fixture.report, REPORT_EXPECT_RECORD, &outcomes);
    EXPECT_EQ(outcomes.failed, 1);
    EXPECT_EQ(outcomes.record_count, 0);
    report_outcomes_free(&outcomes);
    fixture_destroy(&fixture);
}
