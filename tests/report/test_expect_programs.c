// Expectations about what programs print, and about counters.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe.h"
#include "tests/shim/test.h"

#define LATENCY "latency ([0-9.]+) us"

static void match_is(const char *match, const char *printed, double max, const char *expected)
{
    struct fixture fixture;
    fixture_create(&fixture);
    observe_add(&fixture, "client", match, NULL)->max = max;
    observe_printed(&fixture, printed);
    observe_is(&fixture, expected);
    fixture_destroy(&fixture);
}

TEST(ExpectMatch, HoldsWhereEveryMatchingLineDoes)
{
    match_is(LATENCY, "hello\nlatency 1.1 us\nlatency 0.9 us\n", 1.1, "");
    match_is(LATENCY, "latency 1.1 us", 1.1, ""); // without a newline
}

TEST(ExpectMatch, NamesTheOneLineThatDoesNot)
{
    match_is(LATENCY, "hello\nlatency 1.3 us\nlatency 0.9 us\n", 1.1,
             "1.3 is not at most 1.1, in line 2: latency 1.3 us");
}

TEST(ExpectMatch, NamesAllLinesThatDoNot)
{
    match_is(LATENCY, "latency 1.3 us\nlatency 1.4 us\n", 1.1,
             "1.3 is not at most 1.1, in line 1: latency 1.3 us\n"
             "1.3 is not at most 1.1, in line 1: latency 1.3 us\n1.4 is not at most 1.1, in line 2: latency 1.4 us\n");
}

TEST(ExpectMatch, WithoutAMatchShowsWhatWasPrinted)
{
    match_is(LATENCY, "no such thing\n", 1.1,
             "no line that 'client' printed matches '" LATENCY "'\nThe end of what it printed:\n  no such thing\n");
    match_is(LATENCY, "", 1.1, "no line that 'client' printed matches '" LATENCY "'\nIt printed nothing.\n");
}

TEST(ExpectMatch, AMatchThatIsNoNumberFails)
{
    match_is("latency ([a-z]+) us", "latency nan us\n", 1.1,
             "the matched text is not a number, in line 1: latency nan us");
    match_is("latency ([0-9.]*) us", "latency  us\n", 1.1, "the matched text is not a number, in line 1: latency  us");
    match_is("x|latency ([0-9.]*) us", "x\n", 1.1, "the matched text is not a number, in line 1: x");
    match_is("([0-9.]+)", "1.2.3\n", 1.1, "the matched text is not a number, in line 1: 1.2.3");
}

TEST(ExpectMatch, BytesThatAreNoTextAreShownAsNumbers)
{
    match_is("([0-9]+)", "\x1b[31m7\x80\n", 1, "31 is not at most 1, in line 1: \\x1b[31m7\\x80");
}

TEST(ExpectMatch, AProgramThatDidNotRunFails)
{
    struct fixture fixture;
    fixture_create(&fixture);
    observe_add(&fixture, "client", LATENCY, NULL)->max = 1;
    observe_is(&fixture, "'client' did not run");
    fixture_destroy(&fixture);
}

static void output_is(const char *file, const char *printed, const char *expected)
{
    struct fixture fixture;
    char path[256];
    fixture_create(&fixture);
    snprintf(path, sizeof path, "%s/expected.txt", fixture.directory);
    struct scn_check *check = observe_add(&fixture, "client", NULL, NULL);
    snprintf(check->observed.equals, sizeof check->observed.equals, "expected.txt");
    snprintf(path, sizeof path, "%s/", fixture.directory);
    fixture.scenario->directory = path;
    char name[512];
    snprintf(name, sizeof name, "%sexpected.txt", path);
    FILE *out = fopen(name, "w");
    fputs(file, out);
    fclose(out);
    observe_printed(&fixture, printed);
    observe_is(&fixture, expected);
    fixture_destroy(&fixture);
}

TEST(ExpectOutput, HoldsWhereEveryByteIsThere)
{
    output_is("a\nb\n", "a\nb\n", "");
    output_is("", "", "");
}

TEST(ExpectOutput, ShowsTheDifference)
{
    output_is("a\nb\nc\n", "a\nx\nc\n",
              "what 'client' printed is not expected.txt\n--- expected.txt\n+++ what client printed\n"
              "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
    output_is("a\n", "a",
              "what 'client' printed is not expected.txt\n--- expected.txt\n+++ what client printed\n"
              "@@ -1,1 +1,1 @@\n-a\n+a\n\\ No newline at end of file\n");
}

TEST(ExpectOutput, AnAbsolutePathDoesNotBeginAtTheScenario)
{
    struct fixture fixture;
    fixture_create(&fixture);
    struct scn_check *check = observe_add(&fixture, "client", NULL, NULL);
    snprintf(check->observed.equals, sizeof check->observed.equals, "%s", fixture.input); // its text is "abc"
    fixture.scenario->directory = "/elsewhere/";
    observe_printed(&fixture, "abc");
    observe_is(&fixture, "");
    fixture_destroy(&fixture);
}

TEST(ExpectOutput, AFileThatIsNotThereFails)
{
    struct fixture fixture;
    fixture_create(&fixture);
    struct scn_check *check = observe_add(&fixture, "client", NULL, NULL);
    snprintf(check->observed.equals, sizeof check->observed.equals, "/no/file");
    observe_printed(&fixture, "a\n");
    observe_is(&fixture, "/no/file cannot be read: No such file or directory");
    fixture_destroy(&fixture);
}

static void counters_add(struct fixture *fixture, const char *series, uint64_t value)
{
    report_add_counter(fixture->report, series, "node0.hca", "rnr_naks_sent", "packets", value);
    report_add_counter(fixture->report, series, "node0.hca", "retries", "times", 0);
}

TEST(ExpectCounter, IsThatOfThePrograms)
{
    struct fixture fixture;
    fixture_create(&fixture);
    observe_add(&fixture, NULL, NULL, "node0.hca.rnr_naks_sent")->max = 2;
    observe_printed(&fixture, "");
    counters_add(&fixture, "pio", 9);
    counters_add(&fixture, "exec", 2);
    observe_is(&fixture, "");
    fixture.scenario->expects[0].max = 1;
    observe_is(&fixture, "2 is not at most 1");
    fixture_destroy(&fixture);
}

TEST(ExpectCounter, WithoutProgramsIsThatOfEverySeries)
{
    struct fixture fixture;
    fixture_create(&fixture);
    observe_add(&fixture, NULL, NULL, "node0.hca.rnr_naks_sent")->max = 8;
    counters_add(&fixture, "pio", 1);
    counters_add(&fixture, "dma", 9);
    observe_is(&fixture, "9 is not at most 8, in series 'dma'");
    fixture_destroy(&fixture);
}

TEST(ExpectCounter, ThatDoesNotExistFailsWithNamesThatDo)
{
    struct fixture fixture;
    fixture_create(&fixture);
    observe_add(&fixture, NULL, NULL, "node0.hca.retry")->max = 8;
    observe_printed(&fixture, "");
    observe_is(&fixture, "no component has a counter 'node0.hca.retry'\nThere are no counters.\n");
    counters_add(&fixture, "exec", 1);
    observe_is(&fixture, "no component has a counter 'node0.hca.retry'\nSimilar names:\n  node0.hca.retries\n"
                         "  node0.hca.rnr_naks_sent\n");
    fixture_destroy(&fixture);
}
