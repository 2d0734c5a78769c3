// Tables that programs print.
#include <string.h>

#include "sim/report/printed.h"
#include "fixture.h"
#include "tests/shim/test.h"

struct printed {
    struct fixture fixture;
    struct scn_results results;
    enum sim_status status;
    char error[256];
};

static void printed_read(struct printed *printed, enum scn_format format, const char *columns, const char *text)
{
    fixture_create(&printed->fixture);
    printed->results = (struct scn_results){.series = "s", .format = format};
    snprintf(printed->results.columns, sizeof printed->results.columns, "%s", columns);
    printed->error[0] = '\0';
    printed->status =
        report_add_printed(printed->fixture.report, &printed->results, text, printed->error, sizeof printed->error);
}

static void row_expect(const struct printed *printed, size_t index, uint64_t bytes, uint64_t operations,
                       uint64_t total_ps)
{
    EXPECT_LT(index, printed->fixture.report->point_count);
    if (index < printed->fixture.report->point_count) {
        const struct report_point *point = &printed->fixture.report->points[index];
        EXPECT_EQ(point->bytes, bytes);
        EXPECT_EQ(point->operations, operations);
        EXPECT_EQ(point->total_ps, total_ps);
    }
}

static void count_expect(struct printed *printed, size_t count)
{
    EXPECT_EQ(printed->status, SIM_OK);
    EXPECT_EQ(printed->fixture.report->point_count, count);
}

TEST(Printed, PerftestsLatenciesAreTheMeanOfItsIterations)
{
    struct printed printed;
    printed_read(
        &printed, SCN_FORMAT_PERFTEST, "",
        "                    Send Latency Test\n"
        " Number of qps   : 1\t\tTransport type : IB\n"
        " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
        "99% percentile[usec]   99.9% percentile[usec] \n"
        " 2       20            1.99           2.01         2.00     \t       2.00        \t0.01   \t\t2.01    "
        "\t\t2.01   \n"
        " 4096    20            4.86           4.90         4.87     \t       4.87        \t0.00   \t\t4.90    "
        "\t\t4.90   \n"
        "---------------------------------------------------------------------------------------\n");
    count_expect(&printed, 2);
    row_expect(&printed, 0, 2, 20, 40000000);
    row_expect(&printed, 1, 4096, 20, 97400000);
    EXPECT_EQ(printed.fixture.report->points[1].min_ps, 4860000);
    EXPECT_EQ(printed.fixture.report->points[1].max_ps, 4900000);
    EXPECT_STREQ(printed.fixture.report->points[1].series, "s");
    fixture_destroy(&printed.fixture);
}

TEST(Printed, PerftestsBandwidthIsInMebibytesOrGigabits)
{
    struct printed printed;
    printed_read(&printed, SCN_FORMAT_PERFTEST, "",
                 " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
                 " 65536      100              3659.86            3659.85\t\t   0.058558\n"
                 " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
                 " 65536      1000             30.00              25.00 \t\t   0.05\n");
    count_expect(&printed, 2);
    row_expect(&printed, 0, 65536, 100, 1707720262); // 6553600 B / (3659.85 * 1048576 B/s)
    row_expect(&printed, 1, 65536, 1000, 20971520000);
    fixture_destroy(&printed.fixture);
}

TEST(Printed, OsuTablesOfBothShapes)
{
    struct printed printed;
    printed_read(&printed, SCN_FORMAT_OSU, "",
                 "# OSU MPI Latency Test v7.3\n# Size          Latency (us)\n0                       1.50\n"
                 "8                       1.75\n# OSU MPI Bandwidth Test\n# Size      Bandwidth (MB/s)\n"
                 "4                       8.00\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  "
                 "Iterations\n16                    4.00              3.00              5.00         1000\n");
    count_expect(&printed, 4);
    row_expect(&printed, 0, 0, 1, 1500000);
    row_expect(&printed, 2, 4, 1, 500000);
    row_expect(&printed, 3, 16, 1000, 4000000000);
    EXPECT_EQ(printed.fixture.report->points[3].min_ps, 3000000);
    fixture_destroy(&printed.fixture);
}

TEST(Printed, CommaSeparatedValuesHaveALineOfNames)
{
    struct printed printed;
    printed_read(&printed, SCN_FORMAT_CSV, "",
                 "starting, with 2 ranks\nseries,bytes,latency_us,colour\nhalo,64,2.5,red\nall,8,1,blue\n"
                 "done,8,nothing,here\nbytes,operations,bandwidth_MBps\n1000,10,500\n");
    count_expect(&printed, 3);
    row_expect(&printed, 0, 64, 1, 2500000);
    EXPECT_STREQ(printed.fixture.report->points[0].series, "s, halo");
    EXPECT_STREQ(printed.fixture.report->points[1].series, "s, all");
    row_expect(&printed, 2, 1000, 10, 20000000);
    fixture_destroy(&printed.fixture);
}

TEST(Printed, ColumnsNameTheWordsOfALine)
{
    struct printed printed;
    printed_read(&printed, SCN_FORMAT_NONE, "- bytes latency_us",
                 "rank 8 1.25\nrank 16 fast\nrank 16 1.5 2\nrank 16 1.5\n\n");
    count_expect(&printed, 2);
    row_expect(&printed, 0, 8, 1, 1250000);
    row_expect(&printed, 1, 16, 1, 1500000);
    fixture_destroy(&printed.fixture);
}

static void refused(enum scn_format format, const char *columns, const char *text, enum sim_status status,
                    const char *error)
{
    struct printed printed;
    printed_read(&printed, format, columns, text);
    EXPECT_EQ(printed.status, status);
    EXPECT_CONTAINS(printed.error, error);
    fixture_destroy(&printed.fixture);
}

TEST(Printed, WhatIsNoTableIsToldAndNumbersAreBelievedOnlyWithinReason)
{
    refused(SCN_FORMAT_PERFTEST, "", "", SIM_ERR_NOT_FOUND, "it printed no results");
    refused(SCN_FORMAT_CSV, "", "8,1.5\n", SIM_ERR_NOT_FOUND, "it printed no results");
    refused(SCN_FORMAT_OSU, "", "8 1.5\n", SIM_ERR_NOT_FOUND, "it printed no results");
    refused(SCN_FORMAT_NONE, "bytes latency_us", "8 -1\n8 nan\n8 inf\n8 1e300\n8 0\n-8 1\n", SIM_ERR_NOT_FOUND,
            "it printed no results");
    refused(SCN_FORMAT_NONE, "bytes operations latency_us", "8 1e15 1e15\n", SIM_ERR_NOT_FOUND,
            "it printed no results");
    refused(SCN_FORMAT_NONE, "bytes latency_us bandwidth_MBps", "1000 10 200\n", SIM_ERR_INVALID,
            "line 1: the time contradicts the bandwidth");
    char line[8192];
    memset(line, '1', sizeof line);
    line[sizeof line - 1] = '\0';
    refused(SCN_FORMAT_NONE, "latency_us", line, SIM_ERR_NOT_FOUND, "it printed no results");
}

TEST(Printed, NamesOfColumnsAreKnownAndOneIsATimeOrABandwidth)
{
    struct report_printed_line line;
    char wrong[SCN_NAME_MAX];
    EXPECT_EQ(report_printed_columns("bytes - latency_us", &line, wrong), SIM_OK);
    EXPECT_EQ(report_printed_columns("bytes latency", &line, wrong), SIM_ERR_INVALID);
    EXPECT_STREQ(wrong, "latency");
    EXPECT_EQ(report_printed_columns("bytes -", &line, wrong), SIM_ERR_INVALID);
    EXPECT_STREQ(wrong, "");
    EXPECT_EQ(report_printed_columns("latency_us - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -",
                                     &line, wrong),
              SIM_ERR_INVALID);
}
