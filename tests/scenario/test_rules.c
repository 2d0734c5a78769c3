// Rules about runs and values, each with an accepted and a refused case.
#include "fixture.h"

#include <stdio.h>

#define VALUE "value: {series: s, column: latency_us}"

static void refuse_run(const char *run, const char *message)
{
    struct fixture_parts parts = {.run = run};
    fixture_expect_refused(&parts, message);
}

static void accept_run(const char *run)
{
    struct fixture_parts parts = {.run = run};
    fixture_expect_accepted(&parts);
}

static void refuse_rest(const char *rest, const char *message)
{
    struct fixture_parts parts = {.rest = rest};
    fixture_expect_refused(&parts, message);
}

static void accept_rest(const char *rest)
{
    struct fixture_parts parts = {.rest = rest};
    fixture_expect_accepted(&parts);
}

TEST(RunRules, PingpongNeedsAnotherNode)
{
    accept_run("series: s, workload: pingpong, method: pio, node: b, peer: a, bytes: 8 B");
    refuse_run("series: s, workload: pingpong, method: pio, node: a, bytes: 8 B",
               "missing key 'peer' in run: a pingpong needs one");
    refuse_run("series: s, workload: pingpong, method: pio, node: a, peer: a, bytes: 8 B",
               "peer: a pingpong needs another node than 'a'");
}

TEST(RunRules, PingpongNeedsCablesBetweenItsNodes)
{
    struct fixture_parts parts = {.cables = "[]"};
    fixture_expect_refused(&parts, "peer: no cables lead from 'a' to 'b'");
    parts.run = "series: s, workload: local-dma, method: register, node: a, bytes: 8 B";
    fixture_expect_accepted(&parts);
}

TEST(RunRules, LocalDmaStaysOnItsNode)
{
    accept_run("series: s, workload: local-dma, method: register, node: a, bytes: 8 B");
    refuse_run("series: s, workload: local-dma, method: register, node: a, peer: b, bytes: 8 B",
               "peer: local-dma stays on one node and takes no peer");
    refuse_run("series: s, workload: local-dma, method: pio, node: a, bytes: 8 B",
               "method: local-dma needs a DMA method, not pio");
}

TEST(RunRules, MessagesAreWordsOfFourBytes)
{
    accept_run("series: s, workload: pingpong, method: register, node: a, peer: b, bytes: 12 B");
    accept_run("series: s, workload: pingpong, method: pio, node: a, peer: b, bytes: 12 B");
    refuse_run("series: s, workload: pingpong, method: pio, node: a, peer: b, bytes: 6 B",
               "bytes: 6 B is not a multiple of 4 B, as a message by PIO needs");
    refuse_run("series: s, workload: pingpong, method: register, node: a, peer: b, bytes: [8 B, 6 B]",
               "bytes: 6 B is not a multiple of 4 B, as DMA needs");
    refuse_run("series: s, workload: pingpong, method: register, node: a, peer: b, bytes: 0 B",
               "bytes: 0 B is out of range (1 B .. 1 GiB)");
}

#define PINGPONG "series: s, workload: pingpong, method: register, node: a, peer: b, bytes: 8 B"
#define HALO     "series: s, workload: halo, method: chain-host, node: a, bytes: 8 B, columns: 2"
#define STREAM   "series: s, workload: stream, method: register, node: a, bytes: 8 B"

TEST(RunRules, KeysThatAProgramDoesNotUseAreRefused)
{
    accept_run(PINGPONG ", channel: 3, warmup: 9");
    accept_run("series: s, workload: delivery, method: register, node: a, peer: b, bytes: 8 B, channel: 3");
    refuse_run(PINGPONG ", columns: 2", "columns: pingpong does not use it: only a halo has a grid");
    refuse_run(PINGPONG ", notify: board",
               "notify: pingpong does not use it: only programs on libtca wait for notifications");
    accept_run(HALO ", notify: board, warmup: 0");
    refuse_run(HALO ", channel: 1", "channel: halo does not use it: it chooses its channels itself");
    refuse_run(HALO ", descriptors: 4", "descriptors: halo does not use it: it builds its chains itself");
    accept_run(STREAM ", channel: 1, warmup: 0");
    refuse_run(STREAM ", to: gpu0", "to: stream keeps its data in host memory");
    refuse_run(STREAM ", warmup: 5", "warmup: stream does not use it: every repetition counts");
}

TEST(RunRules, AHaloNeedsAWholeGrid)
{
    accept_run(HALO);
    refuse_run("series: s, workload: halo, method: chain-host, node: a, bytes: 8 B",
               "columns: 2 nodes are no grid of 4 columns");
}

TEST(RunRules, PioSendsFromHostMemory)
{
    accept_run("series: s, workload: pingpong, method: pio, node: a, peer: b, bytes: 8 B, to: gpu0");
    refuse_run("series: s, workload: pingpong, method: pio, node: a, peer: b, bytes: 8 B, from: gpu0",
               "from: a pingpong by pio sends from host memory");
}

TEST(RunRules, ATransferHasALimitOfItsOwn)
{
    accept_run("series: s, workload: pingpong, method: register, node: a, peer: b, bytes: 16777212 B");
    refuse_run("series: s, workload: pingpong, method: register, node: a, peer: b, bytes: 16 MiB",
               "bytes: 16777216 B are more than the 16777212 B of one transfer");
}

TEST(RunRules, RegisterModeMakesOneTransfer)
{
    accept_run("series: s, workload: pingpong, method: register, node: a, peer: b, bytes: 8 B, descriptors: 1");
    refuse_run("series: s, workload: pingpong, method: register, node: a, peer: b, bytes: 8 B, descriptors: 2",
               "descriptors: method register makes one transfer, not 2");
    refuse_run("series: s, workload: pingpong, method: pio, node: a, peer: b, bytes: 8 B, descriptors: [1, 3]",
               "descriptors: method pio makes one transfer, not 3");
}

TEST(RunRules, BoardMemoryHoldsSoManyDescriptors)
{
    accept_run("series: s, workload: pingpong, method: chain-board, node: a, peer: b, bytes: 8 B, descriptors: 1024");
    accept_run("series: s, workload: pingpong, method: chain-host, node: a, peer: b, bytes: 8 B, descriptors: 1025");
    refuse_run("series: s, workload: pingpong, method: chain-board, node: a, peer: b, bytes: 8 B, descriptors: 1025",
               "descriptors: the board's memory holds 1024, not 1025");
}

TEST(RunRules, BuffersFitIntoMemory)
{
    accept_run("series: s, workload: pingpong, method: chain-host, node: a, peer: b, bytes: 4 MiB, descriptors: 512");
    refuse_run("series: s, workload: local-dma, method: chain-host, node: a, bytes: 4 MiB, descriptors: 1024",
               "bytes: 4 GiB do not fit into a quarter of the memory of 'a'");
}

#define SMALL_NODE(name) "{name: " name ", preset: ha-pacs-tca-2013, with: {host: {memory: 16 MiB}, gpus: []}}"
#define LARGE_NODE(name) "{name: " name ", preset: ha-pacs-tca-2013}"
#define MESSAGE          "series: s, workload: delivery, method: chain-host, node: a, peer: b, "

TEST(RunRules, BuffersFitIntoTheMemoryOfThePeer)
{
    struct fixture_parts parts = {.nodes = "[" LARGE_NODE("a") ", " SMALL_NODE("b") "]", .run = MESSAGE "bytes: 4 MiB"};
    fixture_expect_accepted(&parts);
    parts.run = MESSAGE "bytes: 4 MiB, descriptors: 2";
    fixture_expect_refused(&parts, "bytes: 8 MiB do not fit into a quarter of the memory of 'b'");
}

TEST(RunRules, TheDestinationIsAGpuOfThePeer)
{
    struct fixture_parts parts = {.nodes = "[" SMALL_NODE("a") ", " LARGE_NODE("b") "]",
                                  .run = MESSAGE "bytes: 8 B, to: gpu0"};
    fixture_expect_accepted(&parts);
    parts.nodes = "[" LARGE_NODE("a") ", " SMALL_NODE("b") "]";
    fixture_expect_refused(&parts, "to: 'b' has 0 GPUs");
}

// Each node of a ping-pong sends and receives.
TEST(RunRules, APingPongNeedsItsGpusOnBothNodes)
{
    struct fixture_parts parts = {.nodes = "[" SMALL_NODE("a") ", " LARGE_NODE("b") "]", .run = PINGPONG ", to: gpu0"};
    fixture_expect_refused(&parts, "to: 'a' has 0 GPUs");
    parts.nodes = "[" LARGE_NODE("a") ", " SMALL_NODE("b") "]";
    parts.run = PINGPONG ", from: gpu0";
    fixture_expect_refused(&parts, "from: 'b' has 0 GPUs");
    parts.nodes = "[" LARGE_NODE("a") ", " LARGE_NODE("b") "]";
    fixture_expect_accepted(&parts);
}

TEST(RunRules, SeriesHaveTheirOwnNames)
{
    accept_run(
        "series: s, workload: local-dma, method: register, node: a, bytes: 8 B}, {series: t, workload: local-dma, "
        "method: register, node: a, bytes: 8 B");
    refuse_run(
        "series: s, workload: local-dma, method: register, node: a, bytes: 8 B}, {series: s, workload: local-dma, "
        "method: register, node: a, bytes: 8 B",
        "series: two runs or programs are called 's'");
}

TEST(ListRules, HoldUpToSixtyFourValues)
{
    accept_run("series: s, workload: local-dma, method: register, node: a, bytes: {from: 4 B, to: 256 B, step: 4 B}");
    refuse_run("series: s, workload: local-dma, method: register, node: a, bytes: {from: 4 B, to: 260 B, step: 4 B}",
               "bytes: more than 64 values");
    refuse_run("series: s, workload: local-dma, method: register, node: a, bytes: []", "bytes: the list is empty");
}

// A local DMA of so many sizes, each of which is written out.
static void run_of_sizes(unsigned count, char run[1024])
{
    int length = snprintf(run, 1024, "series: s, workload: local-dma, method: register, node: a, bytes: [4 B");
    for (unsigned i = 2; i <= count; i++) {
        length += snprintf(run + length, 1024 - (size_t)length, ", %u B", 4 * i);
    }
    snprintf(run + length, 1024 - (size_t)length, "]");
}

TEST(ListRules, HoldUpToSixtyFourListedValues)
{
    char run[1024];
    run_of_sizes(64, run);
    accept_run(run);
    run_of_sizes(65, run);
    refuse_run(run, "bytes: 65 values, at most 64 are allowed");
}

#define PANEL "{title: t, y: latency_us}"

TEST(ListRules, HoldAsManyEntriesAsAreAllowed)
{
    accept_rest("plot: [" PANEL ", " PANEL ", " PANEL ", " PANEL "]");
    refuse_rest("plot: [" PANEL ", " PANEL ", " PANEL ", " PANEL ", " PANEL "]", "plot: 5 entries, allowed are 0 to 4");
}

TEST(ListRules, SweepsGoUpward)
{
    accept_run("series: s, workload: local-dma, method: register, node: a, bytes: {from: 8 B, to: 8 B, factor: 2}");
    refuse_run("series: s, workload: local-dma, method: register, node: a, bytes: {from: 8 B, to: 4 B, factor: 2}",
               "bytes: from: is larger than to:");
    refuse_run("series: s, workload: local-dma, method: register, node: a, bytes: {from: 8 B, to: 16 B, factor: 1}",
               "bytes: 1 is out of range (2 or more)");
    refuse_run("series: s, workload: local-dma, method: register, node: a, bytes: {from: 8 B, to: 16 B}",
               "bytes: expected {from: ..., to: ..., factor: ...} or step: instead of factor:");
}

TEST(ListRules, SweepsEndAtTheirLastValue)
{
    accept_run("series: s, workload: local-dma, method: register, node: a, bytes: {from: 8 B, to: 72 B, factor: 3}");
    refuse_run("series: s, workload: local-dma, method: register, node: a, bytes: {from: 8 B, to: 64 B, factor: 3}",
               "bytes: the steps from from: give 24 B and then 72 B, but not to:");
    refuse_run("series: s, workload: local-dma, method: register, node: a, bytes: {from: 8 B, to: 60 B, step: 8 B}",
               "bytes: the steps from from: give 56 B and then 64 B, but not to:");
}

TEST(ValueRules, SeriesMustBeMeasured)
{
    accept_rest("compare: [{id: H08, " VALUE "}]");
    refuse_rest("compare: [{id: H08, value: {series: nothing, column: latency_us}}]",
                "series: no run is called 'nothing'");
    refuse_rest("compare: [{id: H08, " VALUE ", over: {series: other, column: latency_us}}]",
                "series: no run is called 'other'");
}

TEST(ValueRules, AtStandsForFromAndTo)
{
    accept_rest("compare: [{id: H08, value: {series: s, column: latency_us, from: 8 B, to: 16 B}}]");
    refuse_rest("compare: [{id: H08, value: {series: s, column: latency_us, at: 8 B, to: 16 B}}]",
                "'to' and 'at' exclude each other");
    refuse_rest("compare: [{id: H08, value: {series: s, column: latency_us, from: 32 B, to: 16 B}}]",
                "value: from is larger than to");
}

TEST(ValueRules, DivisionNeedsADivisor)
{
    accept_rest("compare: [{id: H08, " VALUE ", over: {series: s, column: latency_us}, per_row: true}]");
    refuse_rest("compare: [{id: H08, " VALUE ", per_row: true}]", "per_row: needs over:");
    refuse_rest("compare: [{id: H08, " VALUE ", first_reaching: 0.5}]", "first_reaching: needs over:");
    refuse_rest("compare: [{id: H08, " VALUE ", last_reaching: 1}]", "last_reaching: needs over:");
    refuse_rest("compare: [{id: H08, " VALUE ", over: {series: s, column: latency_us}, first_reaching: 0.5, "
                "last_reaching: 1}]",
                "'first_reaching' and 'last_reaching' exclude each other");
}

TEST(ExpectRules, NeedABound)
{
    accept_rest("expect: [{name: x, " VALUE ", min: 1}]");
    accept_rest("expect: [{name: x, " VALUE ", max: 1.5}]");
    refuse_rest("expect: [{name: x, " VALUE "}]", "expect: needs min:, max:, equals: or of:");
    refuse_rest("expect: [{name: x, " VALUE ", min: 2, max: 1}]", "expect: min is larger than max");
}

TEST(ExpectRules, MayAskForEqualityWhereNoTimeOfThisMachineCounts)
{
    struct fixture_parts parts = {.nodes = "[{name: a, preset: ha-pacs-tca-2013, with: {host: {compute: scaled}}}, "
                                           "{name: b, preset: ha-pacs-tca-2013}]",
                                  .rest = "expect: [{name: x, " VALUE ", min: 2, max: 2.5}]"};
    accept_rest("expect: [{name: x, " VALUE ", min: 2, max: 2}]");
    fixture_expect_accepted(&parts);
    parts.rest = "expect: [{name: x, " VALUE ", min: 2, max: 2}]";
    fixture_expect_refused(&parts, "expect: min and max are equal, but the time that programs compute on a counts "
                                   "(compute: scaled)");
}

TEST(ExpectRules, MayAskForARecordedNumberWithATolerance)
{
    struct fixture_parts parts = {.nodes = "[{name: a, preset: ha-pacs-tca-2013, with: {host: {compute: scaled}}}, "
                                           "{name: b, preset: ha-pacs-tca-2013}]",
                                  .rest = "expect: [{name: x, " VALUE ", within: 5 %, of: recorded.yaml}]"};
    fixture_expect_accepted(&parts);
    parts.rest = "expect: [{name: x, " VALUE ", of: recorded.yaml}]";
    fixture_expect_refused(&parts, "expect: of: without within:, but the time that programs compute on a counts "
                                   "(compute: scaled)");
}

TEST(ExpectRules, HaveNamesOfTheirOwnInAFileOfRecordedNumbers)
{
    accept_rest("expect: [{name: x, " VALUE ", of: one.yaml}, {name: x, " VALUE ", of: other.yaml}]");
    refuse_rest("expect: [{name: x, " VALUE ", of: one.yaml}, {name: x, " VALUE ", of: one.yaml}]",
                "expect: two numbers of one.yaml are called 'x'; give them different names by name:");
}

#define LETTERS_21 "abcdefghijklmnopqrstu"
#define UNNAMED    "workload: local-dma, method: register, node: a, bytes: 8 B, series: "

TEST(TypeRules, TextsFitIntoTheirField)
{
    accept_run(UNNAMED LETTERS_21 LETTERS_21 LETTERS_21);
    refuse_run(UNNAMED LETTERS_21 LETTERS_21 LETTERS_21 "v", "series: is longer than 63 bytes");
}

TEST(TypeRules, EachUnitKnowsItsOwn)
{
    struct fixture_parts parts = {.top = "title: t\nseed: \"3\""};
    fixture_expect_refused(&parts, "seed: expected an integer, found a text in quotes");
    parts.top = "title: t\nseed: [3]";
    fixture_expect_refused(&parts, "seed: expected an integer, found a list");
    parts.top = "title: \"two\\nlines\"";
    fixture_expect_refused(&parts, "title: must be one line without control characters");
    parts.top = "title:";
    fixture_expect_refused(&parts, "title: is empty");
    parts.top = "title: t\nname: a/b";
    fixture_expect_refused(&parts, "name: may not hold '/' nor start with '.'");
    refuse_rest("plot: [{title: t, y: latency_us, x_log: yes}]", "x_log: 'yes' is neither true nor false");
    accept_rest("plot: [{title: t, y: latency_us, x_log: true}]");
}
