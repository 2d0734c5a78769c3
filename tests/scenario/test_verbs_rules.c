// Rules about runs of programs on libibverbs and ACP, each with an accepted and a refused case.
#include "fixture.h"

#define NODES "[{name: a, preset: rx200-s7}, {name: b, preset: rx200-s7}]"
#define CABLE "ib_cables: [{from: a, to: b, flight: 15 ns}]"
#define RUN   "series: s, device: ibsim0, operation: send, node: a, peer: b, "

static void refuse_run(const char *run, const char *message)
{
    const struct fixture_parts parts = {.nodes = NODES, .cables = "[]", .run = run, .rest = CABLE};
    fixture_expect_refused(&parts, message);
}

static void accept_run(const char *run)
{
    const struct fixture_parts parts = {.nodes = NODES, .cables = "[]", .run = run, .rest = CABLE};
    fixture_expect_accepted(&parts);
}

// The active MTU of the preset's HCA is 2048 B.
TEST(VerbsRules, ADatagramFitsIntoOnePacket)
{
    accept_run(RUN "workload: verbs-bandwidth, transport: ud, bytes: 2048 B");
    refuse_run(RUN "workload: verbs-bandwidth, transport: ud, bytes: 2049 B",
               "bytes: a datagram has at most the mtu of 2048 B, not 2049 B");
}

TEST(VerbsRules, EachMessageOfADeliveryHasAReceive)
{
    accept_run(RUN "workload: verbs-delivery, bytes: 8 B, receive_depth: 20, iterations: 20");
    refuse_run(RUN "workload: verbs-delivery, bytes: 8 B, receive_depth: 20, iterations: 21",
               "iterations: 21 messages need as many receives, receive_depth is 20");
}

#define ON_BOARDS "series: s, workload: acp-latency, device: tca0, operation: put, node: a, peer: b, bytes: 8 B, "

// Nodes a and b have a board each.
TEST(AcpRules, OnBoardsEachNodeHasOneRank)
{
    struct fixture_parts parts = {.run = ON_BOARDS "ranks: 2"};
    fixture_expect_accepted(&parts);
    parts.run = ON_BOARDS "ranks: 3";
    fixture_expect_refused(&parts, "ranks: one process of a node has tca0, so that 2 nodes have no 3 ranks");
}
