// Cables that are pulled at many instants: data that were reported as arrived are there, nodes that do not use the
// cable are not affected, and every run ends. The workload `stream` checks the data that arrive.
#include <stdlib.h>
#include <string.h>

#include "sim/platform/platform.h"
#include "tests/shim/test.h"
#include "tests/support/platform_fixture.h"

#define US             1000000ull
#define NODES          4
#define MESSAGES       40
#define MESSAGE_TLPS   3 // two of data, one of the completion word
#define THROUGH        1 // the node whose E cable is pulled
#define BESIDE         2
#define STEP_PS        421337ull // 200 of them last longer than a run
#define TLPS_OF_STREAM (MESSAGES * MESSAGE_TLPS)

struct outcome {
    struct plat_result result;
    struct plat_point point;
    struct plat_fault faults[2];
    unsigned points, fault_count;
};

static void note_point(void *ctx, const struct plat_point *point)
{
    struct outcome *outcome = ctx;
    outcome->points++;
    outcome->point = *point;
}

static void note_fault(void *ctx, const struct plat_fault *fault)
{
    struct outcome *outcome = ctx;
    outcome->faults[outcome->fault_count++] = *fault;
}

static void run(const struct scn_scenario *scenario, struct outcome *outcome)
{
    const struct plat_hooks hooks = {.ctx = outcome, .point = note_point, .fault = note_fault};
    *outcome = (struct outcome){0};
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &outcome->result), SIM_OK);
}

static struct scn_scenario *ring(enum scn_fidelity fidelity)
{
    struct scn_scenario *scenario = platform_fixture_line(NODES);
    struct scn_cable *closing = &scenario->cables[scenario->cable_count++];
    *closing = scenario->cables[0];
    closing->from_node = NODES - 1;
    closing->to_node = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        scenario->nodes[i].board.fidelity = fidelity;
    }
    return scenario;
}

static void pull(struct scn_scenario *scenario, uint32_t cable, uint64_t at_ps, uint64_t after_tlps)
{
    scenario->faults[scenario->fault_count++] = (struct scn_fault){
        .ends = {.given = true}, .cable = cable, .at_ps = at_ps, .after_tlps = after_tlps, .for_ps = SCN_NOT_GIVEN};
}

// The streams of all nodes run; the one that begins at `node` is reported.
static struct scn_scenario *streams(enum scn_fidelity fidelity, enum scn_method method, uint32_t node)
{
    struct scn_scenario *scenario = ring(fidelity);
    struct scn_run *series = platform_fixture_run_add(scenario, SCN_WORKLOAD_STREAM, method);
    series->node = node;
    series->peer = SCN_NODE_NONE;
    series->iterations = MESSAGES;
    platform_fixture_size_add(series, method == SCN_METHOD_REGISTER ? 512 : 256, method == SCN_METHOD_REGISTER ? 1 : 2);
    return scenario;
}

static void expect_done(const struct outcome *outcome)
{
    EXPECT_STREQ(outcome->result.text, ""); // not empty also if a packet is left
    EXPECT_EQ(outcome->result.outcome, SIM_RUN_DONE);
    EXPECT_EQ(outcome->points, 1);
}

// Every packet arrived, was lost or was dropped; the arrived packets are whole messages, except for the last message.
static void expect_accounted(const struct outcome *outcome)
{
    const struct plat_fault_end *from = &outcome->faults[0].ends[0], *to = &outcome->faults[0].ends[1];
    uint64_t gone = from->lost + from->dropped;
    EXPECT_EQ(outcome->point.operations, (TLPS_OF_STREAM - gone) / MESSAGE_TLPS);
    EXPECT_EQ(to->sent + to->lost + to->dropped, 0);
}

static void run_pulled(enum scn_fidelity fidelity, enum scn_method method, uint64_t at_ps, uint64_t after_tlps,
                       struct outcome *outcome)
{
    struct scn_scenario *scenario = streams(fidelity, method, THROUGH);
    pull(scenario, THROUGH, at_ps, after_tlps);
    run(scenario, outcome);
    expect_done(outcome);
    EXPECT_EQ(outcome->fault_count, 1);
    expect_accounted(outcome);
    platform_fixture_free(scenario);
}

TEST(PulledCable, LosesOnlyWhatWasNotToldToBeThereAfterAnyNumberOfPackets)
{
    const enum scn_method methods[] = {SCN_METHOD_REGISTER, SCN_METHOD_CHAIN_HOST, SCN_METHOD_CHAIN_BOARD};
    for (uint64_t tlps = 0; tlps <= TLPS_OF_STREAM; tlps++) {
        struct outcome outcome;
        run_pulled(SCN_FIDELITY_TWIN, methods[tlps % 3], SCN_NOT_GIVEN, tlps, &outcome);
        EXPECT_TRUE(outcome.faults[0].happened);
        EXPECT_EQ(outcome.faults[0].ends[0].sent, tlps);
        EXPECT_LE(outcome.point.operations, tlps / MESSAGE_TLPS);
    }
}

TEST(PulledCable, LosesOnlyWhatWasNotToldToBeThereAtAnyTime)
{
    uint64_t most = 0;
    for (uint64_t i = 0; i < 200; i++) {
        struct outcome outcome;
        run_pulled(SCN_FIDELITY_TWIN, i % 2 == 0 ? SCN_METHOD_REGISTER : SCN_METHOD_CHAIN_BOARD, i * STEP_PS,
                   SCN_NOT_GIVEN, &outcome);
        EXPECT_EQ(outcome.faults[0].after_start_ps, outcome.faults[0].happened ? i * STEP_PS : 0);
        most = outcome.point.operations > most ? outcome.point.operations : most;
    }
    EXPECT_EQ(most, MESSAGES); // the last pulls are after the end of the stream
}

TEST(PulledCable, LeavesTheMeanOfAStreamBetweenItsExtremes)
{
    struct outcome outcome;
    run_pulled(SCN_FIDELITY_TWIN, SCN_METHOD_REGISTER, SCN_NOT_GIVEN, TLPS_OF_STREAM / 2, &outcome);
    EXPECT_EQ(outcome.point.operations, MESSAGES / 2 - 1); // the last packet was in flight
    EXPECT_GE(outcome.point.total_ps, outcome.point.min_ps * outcome.point.operations);
    EXPECT_LE(outcome.point.total_ps, (outcome.point.max_ps + 1) * outcome.point.operations);
}

static void expect_same(const struct outcome *rtl, const struct outcome *twin)
{
    EXPECT_EQ(rtl->point.operations, twin->point.operations);
    EXPECT_EQ(rtl->point.total_ps, twin->point.total_ps);
    EXPECT_EQ(rtl->result.simulated_ps, twin->result.simulated_ps);
    EXPECT_EQ(rtl->faults[0].at_ps, twin->faults[0].at_ps);
    EXPECT_EQ(rtl->faults[0].ends[0].lost, twin->faults[0].ends[0].lost);
    EXPECT_EQ(rtl->faults[0].ends[0].dropped, twin->faults[0].ends[0].dropped);
}

TEST(PulledCable, IsTheSameToTheRtlAndItsTwin)
{
    for (uint64_t i = 0; i < 12; i++) {
        struct outcome rtl, twin;
        enum scn_method method = i % 2 == 0 ? SCN_METHOD_REGISTER : SCN_METHOD_CHAIN_HOST;
        uint64_t at_ps = i % 3 == 0 ? i * 4 * US + 1234567 : SCN_NOT_GIVEN;
        uint64_t after_tlps = i % 3 == 0 ? SCN_NOT_GIVEN : i * 9;
        run_pulled(SCN_FIDELITY_RTL, method, at_ps, after_tlps, &rtl);
        run_pulled(SCN_FIDELITY_TWIN, method, at_ps, after_tlps, &twin);
        expect_same(&rtl, &twin);
    }
}

TEST(PulledCable, IsNotNoticedBesideIt)
{
    for (uint64_t tlps = 0; tlps < TLPS_OF_STREAM; tlps += 7) {
        struct scn_scenario *scenario = streams(SCN_FIDELITY_TWIN, SCN_METHOD_REGISTER, BESIDE);
        struct outcome outcome;
        pull(scenario, THROUGH, SCN_NOT_GIVEN, tlps);
        run(scenario, &outcome);
        expect_done(&outcome);
        EXPECT_EQ(outcome.point.operations, MESSAGES);
        platform_fixture_free(scenario);
    }
}

TEST(PulledCable, CarriesNothingWhenItIsPulledBeforeTheFirstPacket)
{
    for (unsigned i = 0; i < 2; i++) {
        struct outcome outcome;
        run_pulled(i == 0 ? SCN_FIDELITY_TWIN : SCN_FIDELITY_RTL, SCN_METHOD_REGISTER, i == 0 ? 0 : SCN_NOT_GIVEN,
                   i == 0 ? SCN_NOT_GIVEN : 0, &outcome);
        EXPECT_EQ(outcome.point.operations, 0);
        EXPECT_EQ(outcome.faults[0].after_start_ps, 0);
        EXPECT_EQ(outcome.faults[0].ends[0].lost, 0);
        EXPECT_EQ(outcome.faults[0].ends[0].dropped, TLPS_OF_STREAM);
    }
}

TEST(PulledCable, MayBeSeveral)
{
    struct scn_scenario *scenario = streams(SCN_FIDELITY_TWIN, SCN_METHOD_CHAIN_HOST, THROUGH);
    struct outcome outcome;
    pull(scenario, THROUGH, SCN_NOT_GIVEN, 50);
    pull(scenario, 0, 20 * US, SCN_NOT_GIVEN);
    run(scenario, &outcome);
    expect_done(&outcome);
    EXPECT_EQ(outcome.fault_count, 2);
    EXPECT_STREQ(outcome.faults[0].what, "node1.E-node2.W pulled");
    EXPECT_STREQ(outcome.faults[1].what, "node0.E-node1.W pulled");
    EXPECT_STREQ(outcome.faults[1].ends[1].name, "node1.W");
    EXPECT_TRUE(outcome.faults[0].happened && outcome.faults[1].happened);
    platform_fixture_free(scenario);
}

// The series does not wait for these faults: it takes as long as without them.
TEST(PulledCable, DoesNotComeAfterTheEnd)
{
    struct scn_scenario *scenario = streams(SCN_FIDELITY_TWIN, SCN_METHOD_REGISTER, 0);
    struct outcome without, with;
    run(scenario, &without);
    pull(scenario, THROUGH, 5 * 1000000 * US, SCN_NOT_GIVEN);
    pull(scenario, 0, SCN_NOT_GIVEN, TLPS_OF_STREAM + 1);
    run(scenario, &with);
    expect_done(&with);
    EXPECT_EQ(with.result.simulated_ps, without.result.simulated_ps);
    EXPECT_FALSE(with.faults[0].happened || with.faults[1].happened);
    EXPECT_EQ(with.faults[1].ends[0].sent, TLPS_OF_STREAM);
    platform_fixture_free(scenario);
}

TEST(PulledCable, GivesTheSameTwice)
{
    struct outcome first, second;
    run_pulled(SCN_FIDELITY_TWIN, SCN_METHOD_CHAIN_BOARD, 30 * US, SCN_NOT_GIVEN, &first);
    run_pulled(SCN_FIDELITY_TWIN, SCN_METHOD_CHAIN_BOARD, 30 * US, SCN_NOT_GIVEN, &second);
    EXPECT_EQ(first.result.events, second.result.events);
    expect_same(&first, &second);
}

// --- programs that wait for lost data --------------------------------------------------------------------------------

// Every program ends by itself or reports what it waits for, and never accepts wrong data.
static void expect_ended(enum scn_workload workload, enum scn_method method, enum scn_notify notify, uint64_t tlps,
                         const char *says)
{
    struct scn_scenario *scenario = ring(SCN_FIDELITY_TWIN);
    struct scn_run *series = platform_fixture_run_add(scenario, workload, method);
    struct outcome outcome;
    series->columns = 2;
    series->notify = notify;
    scenario->time_limit_ps = 2000000 * US;
    platform_fixture_size_add(series, 1000, 1);
    pull(scenario, 0, SCN_NOT_GIVEN, tlps);
    run(scenario, &outcome);
    EXPECT_NE(outcome.result.outcome, SIM_RUN_TIME_LIMIT);
    EXPECT_LACKS(outcome.result.text, "wrong");
    if (outcome.faults[0].happened) {
        EXPECT_EQ(outcome.points, 0);
        EXPECT_CONTAINS(outcome.result.text, says);
    } else {
        expect_done(&outcome);
    }
    platform_fixture_free(scenario);
}

TEST(PulledCable, LeavesProgramsThatSayWhatTheyWaitFor)
{
    static const char stuck[] = "waits for node", timeout[] = "tcaWaitDMARecvDesc: tag 1 did not come to slot";
    for (uint64_t tlps = 0; tlps < 60; tlps += 6) {
        expect_ended(SCN_WORKLOAD_PINGPONG, SCN_METHOD_PIO, SCN_NOTIFY_HOST, tlps, stuck);
        expect_ended(SCN_WORKLOAD_PINGPONG, SCN_METHOD_REGISTER, SCN_NOTIFY_HOST, tlps, stuck);
        expect_ended(SCN_WORKLOAD_PINGPONG, SCN_METHOD_CHAIN_BOARD, SCN_NOTIFY_HOST, tlps, stuck);
        expect_ended(SCN_WORKLOAD_PROXY_READ, SCN_METHOD_REGISTER, SCN_NOTIFY_HOST, tlps, stuck);
        expect_ended(SCN_WORKLOAD_TCA_PINGPONG, SCN_METHOD_CHAIN_HOST, SCN_NOTIFY_HOST, tlps, timeout);
        expect_ended(SCN_WORKLOAD_TCA_PINGPONG, SCN_METHOD_CHAIN_BOARD, SCN_NOTIFY_BOARD, tlps, timeout);
        expect_ended(SCN_WORKLOAD_ALL_TO_ALL, SCN_METHOD_CHAIN_HOST, SCN_NOTIFY_HOST, tlps, timeout);
        expect_ended(SCN_WORKLOAD_RING_EXCHANGE, SCN_METHOD_CHAIN_BOARD, SCN_NOTIFY_HOST, tlps, timeout);
    }
}

// --- cables that are put back -----------------------------------------------------------------------------------------

static void run_put_back(enum scn_fidelity fidelity, enum scn_method method, uint64_t at_ps, uint64_t for_ps,
                         struct outcome *outcome)
{
    struct scn_scenario *scenario = streams(fidelity, method, THROUGH);
    struct scn_run *series = &scenario->runs[0];
    series->bytes[series->bytes_count++] = 64; // the next messages
    pull(scenario, THROUGH, at_ps, SCN_NOT_GIVEN);
    scenario->faults[0].for_ps = for_ps;
    run(scenario, outcome);
    EXPECT_STREQ(outcome->result.text, "");
    EXPECT_EQ(outcome->result.outcome, SIM_RUN_DONE);
    EXPECT_EQ(outcome->points, 2);
    platform_fixture_free(scenario);
}

// The workload finds a message that is complete but not whole.
TEST(CableThatIsPutBack, CarriesAllLaterMessagesAndNoneThatHasAGap)
{
    for (uint64_t i = 0; i < 60; i++) {
        TEST_TRACE("step %llu", (unsigned long long)i);
        struct outcome outcome;
        enum scn_method method = i % 2 == 0 ? SCN_METHOD_REGISTER : SCN_METHOD_CHAIN_HOST;
        run_put_back(SCN_FIDELITY_TWIN, method, i * STEP_PS, i * 1717171 % (30 * US) + 1, &outcome);
        EXPECT_EQ(outcome.point.operations, MESSAGES); // of the second size
        EXPECT_TRUE(outcome.faults[0].happened);
        EXPECT_GT(outcome.faults[0].back_ps, outcome.faults[0].at_ps + 20 * US);
    }
}

TEST(CableThatIsPutBack, IsTheSameToTheRtlAndItsTwin)
{
    for (uint64_t i = 0; i < 4; i++) {
        TEST_TRACE("step %llu", (unsigned long long)i);
        struct outcome rtl, twin;
        enum scn_method method = i % 2 == 0 ? SCN_METHOD_REGISTER : SCN_METHOD_CHAIN_HOST;
        run_put_back(SCN_FIDELITY_RTL, method, i * 7 * US + 1234567, 3 * US, &rtl);
        run_put_back(SCN_FIDELITY_TWIN, method, i * 7 * US + 1234567, 3 * US, &twin);
        expect_same(&rtl, &twin);
        EXPECT_EQ(rtl.faults[0].back_ps, twin.faults[0].back_ps);
    }
}

TEST(CableThatIsPutBack, StaysAwayIfTheProgramsEndBefore)
{
    struct outcome outcome;
    run_put_back(SCN_FIDELITY_TWIN, SCN_METHOD_REGISTER, 20 * US, 1000000 * US, &outcome);
    EXPECT_EQ(outcome.point.operations, 0);
    EXPECT_EQ(outcome.faults[0].back_ps, 0);
    EXPECT_LT(outcome.result.simulated_ps, 10000 * US);
}

// --- windows that end -------------------------------------------------------------------------------------------------

static void run_unpinned(enum scn_fidelity fidelity, bool reads, uint64_t at_ps, struct outcome *outcome)
{
    struct scn_scenario *scenario = ring(fidelity);
    struct scn_run *series = platform_fixture_run_add(scenario, SCN_WORKLOAD_DELIVERY, SCN_METHOD_REGISTER);
    platform_fixture_gpus(scenario, reads ? 0 : 1, 1);
    series->node = 0;
    series->peer = 1;
    series->iterations = 20;
    *(reads ? &series->from : &series->to) = SCN_MEMORY_GPU0;
    platform_fixture_size_add(series, 2048, 1);
    scenario->faults[scenario->fault_count++] = (struct scn_fault){.kind = SCN_FAULT_UNPIN,
                                                                   .node = reads ? 0 : 1,
                                                                   .device = SCN_FAULT_GPU0,
                                                                   .at_ps = at_ps,
                                                                   .after_tlps = SCN_NOT_GIVEN,
                                                                   .for_ps = SCN_NOT_GIVEN};
    run(scenario, outcome);
    expect_done(outcome);
    platform_fixture_free(scenario);
}

TEST(WindowThatEnds, FailsTheDmasThatReadThere)
{
    struct outcome outcome;
    uint64_t last = 0, some = 0, at_ps = 32 * US; // the memory is pinned
    for (; last < 20 && at_ps < 2000 * US; at_ps += 16337021) {
        TEST_TRACE("at %llu ps", (unsigned long long)at_ps);
        run_unpinned(SCN_FIDELITY_TWIN, true, at_ps, &outcome);
        EXPECT_GE(outcome.point.operations, last);
        last = outcome.point.operations;
        some += last > 0 && last < 20;
        EXPECT_EQ(outcome.point.min_ps, last > 0 ? outcome.point.total_ps / last : 0); // of those that ended well
        EXPECT_STREQ(outcome.faults[0].what, "node0.gpu0 unpinned");
    }
    EXPECT_GT(some, 0);
    EXPECT_EQ(last, 20);
    EXPECT_GT(at_ps, 60 * US); // earlier ones fail some
}

TEST(WindowThatEnds, IsTheSameToTheRtlAndItsTwin)
{
    for (uint64_t i = 0; i < 6; i++) {
        TEST_TRACE("step %llu", (unsigned long long)i);
        struct outcome rtl, twin;
        run_unpinned(SCN_FIDELITY_RTL, i % 2 == 0, i * 21 * US + 1234567, &rtl);
        run_unpinned(SCN_FIDELITY_TWIN, i % 2 == 0, i * 21 * US + 1234567, &twin);
        expect_same(&rtl, &twin);
    }
}
