// The command `explain`.
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "tests/shim/test.h"

#define SMALL TCASIM_SOURCE_DIR "/scenarios/smoke/verbs-8b.yaml"

// The sum of a column of a file without quotes, over the rows of a series.
static uint64_t column_sum(const char *text, const char *series, unsigned column)
{
    uint64_t sum = 0;
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n') + 1) {
        const char *field = line;
        for (unsigned i = 0; i < column; i++) {
            field = strchr(field, ',') + 1;
        }
        bool wanted = strncmp(line, series, strlen(series)) == 0 && line[strlen(series)] == ',';
        sum += wanted ? strtoull(field, NULL, 10) : 0;
    }
    return sum;
}

TEST(ExplainCommand, WritesPiecesThatAddUpToTheLatencyThatRunMeasures)
{
    struct process process;
    process_init(&process);
    process_run(&process, "explain " SMALL " --out . --timeline t.json");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "\nPCIe ");
    char *csv = process_file_read(&process, "breakdown.csv");
    process_run(&process, "run " SMALL " --out . --quiet");
    char *data = process_file_read(&process, "data.csv");
    ASSERT_NOT_NULL(csv);
    ASSERT_NOT_NULL(data);
    // A round trip of two operations: latency_us has six decimals.
    const char *row = strstr(data, "\nibsim0 send,8,");
    ASSERT_NOT_NULL(row);
    uint64_t latency_ps = (uint64_t)(strtod(row + strlen("\nibsim0 send,8,"), NULL) * 1e6 + 0.5);
    EXPECT_EQ(column_sum(csv, "ibsim0 send", 9), 2 * latency_ps);
    free(csv);
    free(data);
    process_fini(&process);
}

TEST(ExplainCommand, WritesTheSameBytesEveryTime)
{
    struct process process;
    process_init(&process);
    process_run(&process, "explain " SMALL " --out a --series tca0_send --timeline t.json");
    char *csv = process_file_read(&process, "a/breakdown.csv"), *json = process_file_read(&process, "t.json");
    process_run(&process, "explain " SMALL " --out a --series tca0_send --timeline t.json");
    char *again = process_file_read(&process, "a/breakdown.csv"), *json_again = process_file_read(&process, "t.json");
    EXPECT_STREQ(again, csv);
    EXPECT_STREQ(json_again, json);
    free(csv);
    free(json);
    free(again);
    free(json_again);
    process_fini(&process);
}

TEST(ExplainCommand, RefusesASeriesThatIsNotThere)
{
    struct process process;
    process_init(&process);
    process_run(&process, "explain " SMALL " --out . --series tca0_sent");
    EXPECT_EQ(process.status, 2);
    EXPECT_STREQ(process.errors, "tcasim: there is no series 'tca0 sent'; did you mean 'tca0 send'?\n");
    EXPECT_EQ(process_entries(&process), 0);
    process_fini(&process);
}

TEST(ExplainCommand, RefusesASizeThatIsNotMeasured)
{
    struct process process;
    process_init(&process);
    process_run(&process, "explain " SMALL " --out . --series PIO --bytes 16_B");
    EXPECT_EQ(process.status, 2);
    EXPECT_STREQ(process.errors, "tcasim: series 'PIO' does not measure 16 B\n");
    process_run(&process, "explain " SMALL " --out . --series PIO --bytes 8");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "tcasim: --bytes '8'");
    process_fini(&process);
}

TEST(ExplainCommand, StopsWhenItsRecordsWouldTakeMoreMemoryThanItMayHave)
{
    struct process process;
    process_init(&process);
    process_run(&process, "explain " SMALL " --out . --series PIO --memory 4_KiB");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "series 'PIO' has more causes than fit into 4 KiB, after ");
    EXPECT_EQ(process_entries(&process), 0);
    process_run(&process, "explain " SMALL " --out . --series PIO --memory 0_B");
    EXPECT_EQ(process.status, 2);
    EXPECT_STREQ(process.errors, "tcasim: --memory must be more than 0 B\n");
    process_fini(&process);
}

TEST(ExplainCommand, OpensTheSizeThatIsAskedFor)
{
    struct process process;
    process_init(&process);
    process_run(&process, "explain " SMALL " --out . --series PIO --bytes 64_B --set runs.0.bytes=[8_B,64_B]");
    EXPECT_EQ(process.status, 0);
    char *csv = process_file_read(&process, "breakdown.csv");
    EXPECT_CONTAINS(csv, ",64,2,cable,serialisation,node0.E-node1.W.0,node0,");
    free(csv);
    process_fini(&process);
}

TEST(ExplainCommand, OpensTheSmallestSizeUnlessToldOtherwise)
{
    struct process process;
    process_init(&process);
    process_run(&process, "explain " SMALL " --out . --series PIO --set runs.0.bytes=[64_B,8_B,16_B]");
    EXPECT_EQ(process.status, 0);
    char *csv = process_file_read(&process, "breakdown.csv");
    EXPECT_CONTAINS(csv, "\nPIO,8,2,");
    EXPECT_LACKS(csv, "\nPIO,64,");
    EXPECT_LACKS(csv, "\nPIO,16,");
    free(csv);
    process_fini(&process);
}

TEST(ExplainCommand, NamesTheSwitchThatACableBeginsAt)
{
    struct process process;
    process_init(&process);
    process_run(&process, "explain " TCASIM_SOURCE_DIR
                          "/scenarios/fabric/ib-switches-on-the-way.yaml --out . --series three_switches");
    EXPECT_EQ(process.status, 0);
    char *csv = process_file_read(&process, "breakdown.csv");
    EXPECT_CONTAINS(csv, ",serialisation,leaf0.ib-spine.ib.0,leaf0,");
    EXPECT_CONTAINS(csv, ",serialisation,leaf1.ib-spine.ib.1,spine,");
    EXPECT_CONTAINS(csv, ",serialisation,node2.hca-leaf1.ib.1,leaf1,");
    free(csv);
    process_fini(&process);
}
