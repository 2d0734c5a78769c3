// Comparison of two result directories written by hand; and of directories that are not results.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fixture.h"
#include "sim/report/difference_internal.h"
#include "tests/shim/test.h"

#define DATA_HEAD           "series,bytes,latency_us,bandwidth_GBps,descriptors,operations,min_latency_us,max_latency_us\n"
#define COUNTERS_HEAD       "series,component,name,unit,value\n"
#define COUNTERS            COUNTERS_HEAD "s,node0.hca,retries,times,3\n"
#define ROW(bytes, latency) "s," bytes "," latency ",1.000000,1,10,1.000000,1.000000\n"

struct pair {
    struct fixture fixture;
    char names[2][160];
};

static void file_put(const struct pair *pair, unsigned side, const char *name, const char *text, size_t length)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", pair->names[side], name);
    FILE *out = fopen(path, "w");
    (void)fwrite(text, 1, length, out);
    fclose(out);
}

// Both sides have the same counters; the rows are given.
static void pair_create(struct pair *pair, const char *first, const char *second)
{
    const char *data[] = {first, second};
    fixture_create(&pair->fixture);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(pair->names[i], sizeof pair->names[i], "%s/%u", pair->fixture.directory, i);
        (void)mkdir(pair->names[i], 0777);
        file_put(pair, i, "data.csv", data[i], strlen(data[i]));
        file_put(pair, i, "counters.csv", COUNTERS, strlen(COUNTERS));
    }
}

static difference_t *differ(const struct pair *pair, double within_percent)
{
    char error[1024] = "";
    difference_t *difference = NULL;
    EXPECT_EQ(difference_create(pair->names[0], pair->names[1], within_percent, &difference, error, sizeof error),
              SIM_OK);
    EXPECT_STREQ(error, "");
    return difference;
}

static void count_is(const char *first, const char *second, double within_percent, size_t expected)
{
    struct pair pair;
    pair_create(&pair, first, second);
    difference_t *difference = differ(&pair, within_percent);
    EXPECT_EQ(difference_count(difference), expected);
    difference_destroy(difference);
    fixture_destroy(&pair.fixture);
}

TEST(Difference, EqualRunsHaveNone)
{
    count_is(DATA_HEAD ROW("8", "1.000000"), DATA_HEAD ROW("8", "1.000000"), 0, 0);
    count_is(DATA_HEAD ROW("8", "1.000000"), DATA_HEAD ROW("8", "1.0"), 0, 0); // the same number
    count_is(DATA_HEAD, DATA_HEAD, 0, 0);
}

TEST(Difference, CountsWhatIsFartherThanAllowed)
{
    count_is(DATA_HEAD ROW("8", "2.00"), DATA_HEAD ROW("8", "2.04"), 0, 1);
    count_is(DATA_HEAD ROW("8", "2.00"), DATA_HEAD ROW("8", "2.04"), 2, 0);
    count_is(DATA_HEAD ROW("8", "2.00"), DATA_HEAD ROW("8", "2.041"), 2, 1);
    count_is(DATA_HEAD ROW("8", "0"), DATA_HEAD ROW("8", "0.1"), 50, 1); // no percentage of 0 is 0.1
}

TEST(Difference, ARowOnOneSideCountsWithAllItsNumbers)
{
    count_is(DATA_HEAD ROW("8", "1"), DATA_HEAD ROW("8", "1") ROW("16", "1"), 100, 5);
    count_is(DATA_HEAD ROW("8", "1") ROW("16", "1"), DATA_HEAD ROW("16", "1"), 100, 5);
}

TEST(Difference, RowsThatAreAlikeArePairedInTheirOrder)
{
    count_is(DATA_HEAD ROW("8", "1") ROW("8", "2"), DATA_HEAD ROW("8", "1") ROW("8", "3"), 0, 1);
}

#define RANKS_HEAD                "series,bytes,latency_us,bandwidth_GBps,descriptors,operations,min_latency_us,max_latency_us,ranks\n"
#define RANKS_ROW(latency, ranks) "s,8," latency ",1.000000,1,10,1.000000,1.000000," ranks "\n"

TEST(Difference, RowsArePairedByTheirNumberOfRanks)
{
    count_is(RANKS_HEAD RANKS_ROW("1", "2") RANKS_ROW("2", "4"), RANKS_HEAD RANKS_ROW("2", "4") RANKS_ROW("1", "2"), 0,
             0);
    count_is(RANKS_HEAD RANKS_ROW("1", "2"), RANKS_HEAD RANKS_ROW("1", "4"), 0, 10); // two rows of five numbers
}

TEST(Difference, ANumberThatWasNotMeasuredIsNone)
{
    count_is(DATA_HEAD ROW("8", ""), DATA_HEAD ROW("8", ""), 0, 0);
    count_is(DATA_HEAD ROW("8", ""), DATA_HEAD ROW("8", "1"), 0, 1);
}

TEST(Difference, CountersOf64BitsAreExact)
{
    struct pair pair;
    pair_create(&pair, DATA_HEAD, DATA_HEAD);
    static const char first[] = COUNTERS_HEAD "s,a,b,c,18446744073709551615\n";
    static const char second[] = COUNTERS_HEAD "s,a,b,c,18446744073709551614\n";
    file_put(&pair, 0, "counters.csv", first, strlen(first));
    file_put(&pair, 1, "counters.csv", second, strlen(second));
    difference_t *difference = differ(&pair, 0);
    EXPECT_EQ(difference_count(difference), 1);
    difference_destroy(difference);
    fixture_destroy(&pair.fixture);
}

TEST(Difference, NumbersOfExecCountButItsHash)
{
    static const char *const texts[] = {"# comment\nhash: 37615f46c83b02d2\nsimulated_ps: 1000\nverbs:\n  - node: "
                                        "node0\n    queue_pairs:\n      - {qp: 1, "
                                        "type: RC, sends: {SEND: {count: 7, bytes: 64}}}\n",
                                        "# comment\nhash: 0000000000000000\nsimulated_ps: 2000\nverbs:\n  - node: "
                                        "node1\n    queue_pairs:\n      - {qp: 1, "
                                        "type: UD, sends: {SEND: {count: 8, bytes: 64}}}\n"};
    struct pair pair;
    pair_create(&pair, DATA_HEAD, DATA_HEAD);
    file_put(&pair, 0, "exec.yaml", texts[0], strlen(texts[0]));
    file_put(&pair, 1, "exec.yaml", texts[1], strlen(texts[1]));
    difference_t *difference = differ(&pair, 0);
    ASSERT_EQ(difference_count(difference), 2);
    EXPECT_EQ(difference->counters.count, 5);
    EXPECT_STREQ(difference->counters.items[0].first->name, "simulated_ps");
    EXPECT_STREQ(difference->counters.items[2].first->component, "verbs.0.queue_pairs.0.sends.SEND");
    EXPECT_STREQ(difference->counters.items[2].second->text, "8");
    difference_destroy(difference);
    fixture_destroy(&pair.fixture);
}

static size_t machines_that_differ(const char *first, const char *second)
{
    struct pair pair;
    pair_create(&pair, DATA_HEAD, DATA_HEAD);
    file_put(&pair, 0, "exec.yaml", first, strlen(first));
    file_put(&pair, 1, "exec.yaml", second, strlen(second));
    difference_t *difference = differ(&pair, 0);
    EXPECT_EQ(difference_count(difference), 0);
    EXPECT_EQ(difference->counters.count, 1);
    size_t count = difference->key_count;
    EXPECT_STREQ(count > 0 ? difference->keys[0].path : "machine.kernel", "machine.kernel");
    difference_destroy(difference);
    fixture_destroy(&pair.fixture);
    return count;
}

TEST(Difference, NamesWhatDiffersBetweenTheMachinesOfRunsThatDisagree)
{
    static const char one[] = "hash: 1\nmachine:\n  kernel: \"6.1.0\"\n  files:\n    \"libc.so.6\": 12 B\n";
    static const char other[] = "hash: 2\nmachine:\n  kernel: \"6.12.1\"\n  files:\n    \"libc.so.6\": 12 B\n";
    static const char agreeing[] = "hash: 1\nmachine:\n  kernel: \"6.12.1\"\n";
    EXPECT_EQ(machines_that_differ(one, other), 1);
    EXPECT_EQ(machines_that_differ(one, agreeing), 0);
}

TEST(Difference, NamesKeysThatDifferAndDoesNotCountThem)
{
    struct pair pair;
    static const char first[] = "title: a\nnodes:\n  - {name: n, poll: 20 ns}\nseed: 1\n";
    static const char second[] = "title: a\nnodes:\n  - {name: n, poll: 25 ns, mps: 256 B}\n";
    pair_create(&pair, DATA_HEAD, DATA_HEAD);
    file_put(&pair, 0, "resolved.yaml", first, strlen(first));
    file_put(&pair, 1, "resolved.yaml", second, strlen(second));
    difference_t *difference = differ(&pair, 0);
    EXPECT_EQ(difference_count(difference), 0);
    ASSERT_EQ(difference->key_count, 3);
    EXPECT_STREQ(difference->keys[0].path, "nodes.0.poll");
    EXPECT_STREQ(difference->keys[0].first, "20 ns");
    EXPECT_STREQ(difference->keys[0].second, "25 ns");
    EXPECT_STREQ(difference->keys[1].path, "seed");
    EXPECT_NULL(difference->keys[1].second);
    EXPECT_STREQ(difference->keys[2].path, "nodes.0.mps");
    EXPECT_NULL(difference->keys[2].first);
    difference_destroy(difference);
    fixture_destroy(&pair.fixture);
}

TEST(Difference, WritesEveryNumberAndAPicture)
{
    struct pair pair;
    char error[512] = "", directory[256];
    pair_create(&pair, DATA_HEAD ROW("8", "2.00") ROW("16", "2.00"), DATA_HEAD ROW("8", "2.02") ROW("32", "3.00"));
    difference_t *difference = differ(&pair, 2);
    snprintf(directory, sizeof directory, "%s/out", pair.fixture.directory);
    EXPECT_EQ(difference_write(difference, directory, error, sizeof error), SIM_OK);
    EXPECT_STREQ(error, "");
    char *rows = fixture_read(&pair.fixture, "out", "rows.csv");
    EXPECT_CONTAINS(rows, "series,bytes,descriptors,ranks,column,first,second,difference,percent,state\n"
                          "s,8,1,0,latency_us,2.00,2.02,0.02,1.000000,within\n"
                          "s,8,1,0,bandwidth_GBps,1.000000,1.000000,0,0.000000,equal\n");
    EXPECT_CONTAINS(rows, "\ns,16,1,0,latency_us,2.00,,,,only in the first\n");
    EXPECT_CONTAINS(rows, "\ns,32,1,0,latency_us,,3.00,,,only in the second\n");
    char *counters = fixture_read(&pair.fixture, "out", "counters.csv");
    EXPECT_STREQ(counters, "series,component,name,first,second,difference,percent,state\n"
                           "s,node0.hca,retries,3,3,0,0.000000,equal\n");
    char *picture = fixture_read(&pair.fixture, "out", "plot.svg");
    EXPECT_CONTAINS(picture, "</svg>");
    free(rows);
    free(counters);
    free(picture);
    difference_destroy(difference);
    fixture_destroy(&pair.fixture);
}

static void drawn(const char *first, const char *second)
{
    struct pair pair;
    char error[512] = "", directory[256];
    pair_create(&pair, first, second);
    difference_t *difference = differ(&pair, 0);
    snprintf(directory, sizeof directory, "%s/out", pair.fixture.directory);
    EXPECT_EQ(difference_write(difference, directory, error, sizeof error), SIM_OK);
    EXPECT_STREQ(error, "");
    char *picture = fixture_read(&pair.fixture, "out", "plot.svg");
    EXPECT_CONTAINS(picture, "</svg>");
    free(picture);
    difference_destroy(difference);
    fixture_destroy(&pair.fixture);
}

TEST(Difference, DrawsWhateverThereIs)
{
    drawn(DATA_HEAD ROW("8", "1") ROW("64", "2"),
          DATA_HEAD "other,8,3,,1,10,,\nother,16,4,,1,10,,\n");                            // no common series
    drawn(DATA_HEAD ROW("8", "1"), DATA_HEAD ROW("8", "1"));                               // one size
    drawn(DATA_HEAD ROW("0", "1") ROW("8", "2"), DATA_HEAD ROW("0", "1") ROW("8", "2"));   // 0 has no logarithm
    drawn(DATA_HEAD ROW("8", "0") ROW("16", "0"), DATA_HEAD ROW("8", "0") ROW("16", "1")); // differences from 0
    drawn(DATA_HEAD "it's \"\"\"odd\"\"\" $x `y`,8,1,1,1,1,1,1\n", DATA_HEAD);             // special characters
    drawn(DATA_HEAD, DATA_HEAD ROW("8", "-1") ROW("16", "1e300"));
}

static void refused(const char *name, const char *text, size_t length, const char *message)
{
    struct pair pair;
    char error[1024] = "";
    difference_t *difference = NULL;
    pair_create(&pair, DATA_HEAD, DATA_HEAD);
    file_put(&pair, 1, name, text, length);
    EXPECT_EQ(difference_create(pair.names[0], pair.names[1], 0, &difference, error, sizeof error), SIM_ERR_INVALID);
    EXPECT_CONTAINS(error, message);
    fixture_destroy(&pair.fixture);
}

TEST(Difference, RefusesWhatIsNoTable)
{
#define REFUSED(name, text, message) refused(name, text, sizeof(text) - 1, message)
    REFUSED("data.csv", "", "data.csv: the file is empty");
    REFUSED("data.csv", "series\n", "data.csv:1: there is no column 'bytes'");
    REFUSED("data.csv", "a,a\n", "data.csv:1: two columns are called 'a'");
    REFUSED("data.csv", DATA_HEAD "s,8\n", "data.csv:2: 2 fields, expected 8");
    REFUSED("data.csv", DATA_HEAD "\"s\n\",8,1,1,1,1,1,1\nx\n", "data.csv:4: 1 fields, expected 8");
    REFUSED("data.csv", DATA_HEAD ROW("8", "nan"), "data.csv: row 1: latency_us: 'nan' is not a number");
    REFUSED("data.csv", DATA_HEAD ROW("8", "1e99999"), "'1e99999' is not a number");
    REFUSED("data.csv", DATA_HEAD ROW("8", "0x10"), "'0x10' is not a number");
    REFUSED("data.csv", DATA_HEAD ROW("-8", "1"), "bytes: '-8' is not a whole number");
    REFUSED("data.csv", DATA_HEAD ROW("1e30", "1"), "bytes: '1e30' is not a whole number");
    REFUSED("data.csv", DATA_HEAD "\"s,8,1,1,1,1,1,1\n", "data.csv:2: a quote that is not closed");
    REFUSED("data.csv", DATA_HEAD "s\0,8,1,1,1,1,1,1\n", "data.csv:2: a zero byte: this is no table");
    REFUSED("counters.csv", COUNTERS_HEAD "s,a,b,c,\n", "counters.csv: row 1: value: '' is not a number");
    REFUSED("counters.csv", "series,component,name\n", "there is no column 'value'");
    REFUSED("resolved.yaml", "a: [\n", "resolved.yaml:2:1: ");
#undef REFUSED
}

TEST(Difference, RefusesADirectoryOfSomethingElse)
{
    struct fixture fixture;
    char error[1024] = "";
    difference_t *difference = NULL;
    fixture_create(&fixture);
    EXPECT_EQ(difference_create(fixture.directory, "/no", 0, &difference, error, sizeof error), SIM_ERR_INVALID);
    EXPECT_CONTAINS(error, " has no data.csv: expected a directory that `tcasim run` or `tcasim exec --out` wrote");
    fixture_destroy(&fixture);
}

// Arbitrary bytes are either read or refused.
TEST(Difference, AnyBytesAreReadOrRefused)
{
    struct pair pair;
    char text[400], error[1024];
    uint32_t state = 12345;
    static const char letters[] = "s,8\"\n1.e-\r\xff\0";
    pair_create(&pair, DATA_HEAD, DATA_HEAD);
    for (unsigned i = 0; i < 2000; i++) {
        size_t length = sizeof DATA_HEAD - 1;
        memcpy(text, DATA_HEAD, length);
        for (; length < sizeof DATA_HEAD + 100; length++) {
            state = state * 1664525 + 1013904223;
            text[length] = letters[(state >> 16) % (sizeof letters - 1)];
        }
        difference_t *difference = NULL;
        file_put(&pair, 0, "data.csv", text, length);
        if (difference_create(pair.names[0], pair.names[1], 0, &difference, error, sizeof error) == SIM_OK) {
            difference_destroy(difference);
        }
    }
    fixture_destroy(&pair.fixture);
}
