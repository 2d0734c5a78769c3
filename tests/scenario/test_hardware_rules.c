// Rules about nodes and cables, each with an accepted and a refused case.
#include "fixture.h"

#define NODE(name, with) "{name: " name ", preset: ha-pacs-tca-2013, with: " with "}"
#define LINK             ", preset: pearl-gen2-x8}"
#define LOCAL            "series: s, workload: local-dma, method: register, node: a, bytes: 8 B"

static void refuse_cables(const char *cables, const char *message)
{
    struct fixture_parts parts = {.cables = cables, .run = LOCAL};
    fixture_expect_refused(&parts, message);
}

static void accept_cables(const char *cables)
{
    struct fixture_parts parts = {.cables = cables, .run = LOCAL};
    fixture_expect_accepted(&parts);
}

static void refuse_nodes(const char *nodes, const char *message)
{
    struct fixture_parts parts = {.nodes = nodes, .cables = "[]", .run = LOCAL};
    fixture_expect_refused(&parts, message);
}

static void accept_nodes(const char *nodes)
{
    struct fixture_parts parts = {.nodes = nodes, .cables = "[]", .run = LOCAL};
    fixture_expect_accepted(&parts);
}

TEST(CableRules, JoinAnEndpointToARootComplex)
{
    accept_cables("[{from: a.E, to: b.W" LINK "]");
    accept_cables("[{from: a.W, to: b.E" LINK "]");
    accept_cables("[{from: a.S, to: b.S" LINK "]");
    accept_cables("[{from: a.S, to: b.E" LINK "]");
    refuse_cables("[{from: a.E, to: b.E" LINK "]",
                  "to: the cable joins two endpoints (E to E); a link needs one of each: E is an endpoint, W a "
                  "root complex, S either");
    refuse_cables("[{from: a.W, to: b.W" LINK "]",
                  "to: the cable joins two root complexes (W to W); a link needs one of each: E is an endpoint, W a "
                  "root complex, S either");
}

TEST(CableRules, LeaveTheHostsPortAlone)
{
    refuse_cables("[{from: a.N, to: b.W" LINK "]", "from: port N is the host's port; a cable joins E, W or S");
    refuse_cables("[{from: a.E, to: b.N" LINK "]", "to: port N is the host's port; a cable joins E, W or S");
}

TEST(CableRules, TakeEachPortOnce)
{
    accept_cables("[{from: a.E, to: b.W" LINK ", {from: b.E, to: a.W" LINK "]");
    refuse_cables("[{from: a.E, to: b.W" LINK ", {from: a.E, to: b.S" LINK "]",
                  "from: port a.E already has a cable (line 3); take another one");
}

TEST(CableRules, JoinTwoNodes)
{
    refuse_cables("[{from: a.E, to: a.W" LINK "]", "to: the cable joins node 'a' to itself");
}

TEST(CableRules, NameNodesAndPortsThatExist)
{
    refuse_cables("[{from: a.E, to: c.W" LINK "]", "to: unknown node 'c' (there are: a, b)");
    refuse_cables("[{from: a.X, to: b.W" LINK "]", "from: 'a.X' has no port 'X' for a cable (E, W, S)");
    refuse_cables("[{from: a, to: b.W" LINK "]", "from: 'a' is not a node and a port such as node0.E");
}

TEST(NodeRules, HaveNamesOfTheirOwn)
{
    accept_nodes("[" NODE("a", "{}") ", " NODE("b", "{}") ", " NODE("c_-9", "{}") "]");
    refuse_nodes("[" NODE("a", "{}") ", " NODE("b", "{}") ", " NODE("b", "{}") "]", "two nodes are called 'b'");
    refuse_nodes("[" NODE("a", "{}") ", " NODE("b", "{}") ", " NODE("c.d", "{}") "]",
                 "name: 'c.d' may hold letters, digits, - and _ only");
}

TEST(NodeRules, AreAtMostAsManyAsAScenarioHasRoomFor)
{
    accept_nodes("[" NODE("a", "{}") ", " NODE("b", "{}") ", {name: n, count: 15, preset: ha-pacs-tca-2013}]");
    refuse_nodes("[" NODE("a", "{}") ", {name: n, count: 1024, preset: ha-pacs-tca-2013}]",
                 "nodes: 1025 nodes; a scenario has at most 1024");
    refuse_nodes("[" NODE("a", "{}") ", " NODE("b", "{}") ", {name: n, count: 4000000000, preset: ha-pacs-tca-2013}]",
                 "count: 4000000000 is out of range (1 .. 1024)");
}

TEST(NodeRules, ReceiveBuffersHoldAPacket)
{
    accept_nodes("[" NODE("a", "{board: {posted_data_credits: 16}}") ", " NODE("b", "{}") "]");
    refuse_nodes("[" NODE("a", "{board: {posted_data_credits: 15}}") ", " NODE("b", "{}") "]",
                 "posted_data_credits: 15 of 16 B cannot hold one packet of mps 256 B");
    accept_nodes("[" NODE("a", "{gpus: [{preset: k20, with: {posted_data_credits: 16}}]}") ", " NODE("b", "{}") "]");
    refuse_nodes("[" NODE("a", "{gpus: [{preset: k20, with: {posted_data_credits: 15}}]}") ", " NODE("b", "{}") "]",
                 "posted_data_credits: 15 of 16 B cannot hold one packet of mps 256 B");
}

// A packet of node b may cross the link of node a: it takes 256 B / 16 B = 16 credits there.
TEST(NodeRules, ReceiveBuffersHoldAPacketOfAnyNode)
{
    accept_nodes("[" NODE("a", "{host: {mps: 128 B}, board: {posted_data_credits: 16}}") ", " NODE("b", "{}") "]");
    refuse_nodes("[" NODE("a", "{host: {mps: 128 B}, board: {posted_data_credits: 15}}") ", " NODE("b", "{}") "]",
                 "posted_data_credits: 15 of 16 B cannot hold one packet of mps 256 B");
}

#define LETTERS_31     "abcdefghijklmnopqrstuvwxyzabcde"
#define NUMBERED(name) "{name: " name ", count: 1, preset: ha-pacs-tca-2013}"

TEST(NodeRules, NumbersCountAsPartOfTheName)
{
    accept_nodes("[" NODE("a", "{}") ", " NUMBERED(LETTERS_31 LETTERS_31) "]"); // 62 letters and a digit
    refuse_nodes("[" NODE("a", "{}") ", " NUMBERED(LETTERS_31 LETTERS_31 "f") "]",
                 "name: with its number longer than 63 bytes");
}

TEST(NodeRules, RangesAreChecked)
{
    accept_nodes("[" NODE("a", "{board: {clock: 500 MHz, window_base: 0x10000000000}}") ", " NODE("b", "{}") "]");
    refuse_nodes("[" NODE("a", "{board: {clock: 501 MHz}}") ", " NODE("b", "{}") "]",
                 "clock: 501 MHz is out of range (50 MHz .. 500 MHz)");
    refuse_nodes("[" NODE("a", "{board: {window_base: 0x8000001000}}") ", " NODE("b", "{}") "]",
                 "window_base: 0x8000001000 is out of range (0x8000000000 .. 0x400000000000, multiple of 512 GiB)");
    refuse_nodes("[" NODE("a", "{host: {mps: 300 B}}") ", " NODE("b", "{}") "]",
                 "mps: 300 B is out of range (128 B .. 4 KiB, power of two)");
}

TEST(NodeRules, WithHoldsHardwareOnly)
{
    refuse_nodes("[" NODE("a", "{name: x}") ", " NODE("b", "{}") "]",
                 "'name' belongs to one node, not into a preset or with:");
    refuse_nodes("[{name: a, preset: ha-pacs-tca-2013, host: {poll: 1 ns}}, " NODE("b", "{}") "]",
                 "'host' beside preset: belongs under with:");
}

#define THREE_SWITCHES                                                                                                 \
    "ib_switches: [{name: x, preset: qdr-36}, {name: y, preset: qdr-36}, {name: z, preset: qdr-36}]\n"
#define IB(from, to) "{from: " from ", to: " to ", flight: 15 ns}"

TEST(IbCableRules, SwitchesMayFormRings)
{
    struct fixture_parts parts = {.rest = THREE_SWITCHES "ib_cables: [" IB("x", "y") ", " IB("x", "z") "]"};
    fixture_expect_accepted(&parts);
    parts.rest = THREE_SWITCHES "ib_cables: [" IB("x", "y") ", " IB("x", "z") ", " IB("y", "z") "]";
    fixture_expect_accepted(&parts);
    parts.rest = THREE_SWITCHES "ib_cables: [" IB("x", "y") ", " IB("y", "x") "]";
    fixture_expect_accepted(&parts);
}
