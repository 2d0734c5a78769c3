// The workloads on libibverbs: every operation on both devices; each workload checks every received byte.
#include <string.h>

#include "sim/platform/platform.h"
#include "tests/shim/test.h"

#define PAIR TCASIM_SOURCE_DIR "/tests/platform/verbs-pair.yaml"

struct outcome {
    struct plat_result result;
    unsigned points;
    struct plat_point last;
};

static void note_point(void *ctx, const struct plat_point *point)
{
    struct outcome *outcome = ctx;
    outcome->points++;
    outcome->last = *point;
}

static struct scn_scenario *pair_load(void)
{
    const struct scn_load_options options = {.configs_dir = TCASIM_SOURCE_DIR "/configs"};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    EXPECT_EQ(scn_load(PAIR, &options, &scenario, &messages), SIM_OK);
    for (uint32_t i = 0; i < 2; i++) {
        scenario->nodes[i].board.fidelity = SCN_FIDELITY_TWIN;
    }
    return scenario;
}

// Replaces the only run of the file's scenario by this one.
static struct scn_run *run_make(struct scn_scenario *scenario, enum scn_workload workload, enum scn_device device,
                                enum scn_operation operation)
{
    struct scn_run *run = &scenario->runs[0];
    bool atomic = operation == SCN_OPERATION_COMPARE_SWAP || operation == SCN_OPERATION_FETCH_ADD;
    static const uint64_t sizes[] = {1, 8, 255, 70000};
    run->workload = workload;
    run->method = SCN_METHOD_NONE;
    run->node = 0;
    run->peer = 1;
    run->from = run->to = SCN_MEMORY_HOST;
    run->iterations = 20;
    run->warmup = 3;
    run->verbs.device = device;
    run->verbs.operation = operation;
    run->bytes_count = atomic ? 1 : 4;
    memcpy(run->bytes, atomic ? &sizes[1] : sizes, run->bytes_count * sizeof sizes[0]);
    return run;
}

static struct outcome run_points(struct scn_scenario *scenario)
{
    struct outcome outcome = {0};
    const struct plat_hooks hooks = {.ctx = &outcome, .point = note_point};
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &outcome.result), SIM_OK);
    EXPECT_STREQ(outcome.result.text, "");
    EXPECT_EQ(outcome.result.outcome, SIM_RUN_DONE);
    EXPECT_FALSE(outcome.result.failed);
    EXPECT_EQ(outcome.points, scenario->runs[0].bytes_count);
    EXPECT_GT(outcome.last.min_ps, 0);
    EXPECT_LE(outcome.last.min_ps, outcome.last.max_ps);
    return outcome;
}

static void expect_all(enum scn_workload workload, enum scn_device device, enum scn_memory memory)
{
    struct scn_scenario *scenario = pair_load();
    for (unsigned i = SCN_OPERATION_SEND; i <= SCN_OPERATION_FETCH_ADD; i++) {
        struct scn_run *run = run_make(scenario, workload, device, (enum scn_operation)i);
        bool polled = workload == SCN_WORKLOAD_VERBS_LATENCY && run->verbs.operation == SCN_OPERATION_WRITE;
        run->from = run->to = polled ? SCN_MEMORY_HOST : memory;
        (void)run_points(scenario);
    }
    scn_free(scenario);
}

TEST(VerbsLatency, MeasuresEveryOperationOnBothDevices)
{
    expect_all(SCN_WORKLOAD_VERBS_LATENCY, SCN_DEVICE_TCA0, SCN_MEMORY_HOST);
    expect_all(SCN_WORKLOAD_VERBS_LATENCY, SCN_DEVICE_IBSIM0, SCN_MEMORY_HOST);
}

TEST(VerbsLatency, MeasuresEveryOperationOnGpuMemory)
{
    expect_all(SCN_WORKLOAD_VERBS_LATENCY, SCN_DEVICE_TCA0, SCN_MEMORY_GPU0);
    expect_all(SCN_WORKLOAD_VERBS_LATENCY, SCN_DEVICE_IBSIM0, SCN_MEMORY_GPU0);
}

TEST(VerbsBandwidth, MeasuresEveryOperationOnBothDevices)
{
    expect_all(SCN_WORKLOAD_VERBS_BANDWIDTH, SCN_DEVICE_TCA0, SCN_MEMORY_HOST);
    expect_all(SCN_WORKLOAD_VERBS_BANDWIDTH, SCN_DEVICE_IBSIM0, SCN_MEMORY_HOST);
}

TEST(VerbsBandwidth, MeasuresEveryOperationOnGpuMemory)
{
    expect_all(SCN_WORKLOAD_VERBS_BANDWIDTH, SCN_DEVICE_TCA0, SCN_MEMORY_GPU0);
    expect_all(SCN_WORKLOAD_VERBS_BANDWIDTH, SCN_DEVICE_IBSIM0, SCN_MEMORY_GPU0);
}

// Both directions over three queue pairs, with more repetitions than the queues are deep.
static void expect_both_ways(enum scn_device device)
{
    struct scn_scenario *scenario = pair_load();
    for (unsigned i = SCN_OPERATION_SEND; i <= SCN_OPERATION_FETCH_ADD; i++) {
        struct scn_run *run = run_make(scenario, SCN_WORKLOAD_VERBS_BANDWIDTH, device, (enum scn_operation)i);
        run->verbs.queue_pairs = 3;
        run->verbs.depth = 7;
        run->verbs.cq_mod = 4;
        run->verbs.receive_depth = 5;
        run->verbs.bidirectional = true;
        EXPECT_EQ(run_points(scenario).last.operations, 120); // 20 of each queue pair and direction
    }
    scn_free(scenario);
}

TEST(VerbsBandwidth, GoesBothWaysOverSeveralQueuePairs)
{
    expect_both_ways(SCN_DEVICE_TCA0);
    expect_both_ways(SCN_DEVICE_IBSIM0);
}

// Twenty writes of 70000 B from node 0, with ports of that many MB/s.
static uint64_t writes_ps(uint64_t near_rate, uint64_t far_rate)
{
    struct scn_scenario *scenario = pair_load();
    struct scn_run *run = run_make(scenario, SCN_WORKLOAD_VERBS_BANDWIDTH, SCN_DEVICE_IBSIM0, SCN_OPERATION_WRITE);
    scenario->nodes[0].hca.port_bytes_per_us = near_rate;
    scenario->nodes[1].hca.port_bytes_per_us = far_rate;
    run->bytes[0] = 70000;
    run->bytes_count = 1;
    const struct outcome outcome = run_points(scenario);
    scn_free(scenario);
    EXPECT_EQ(outcome.last.operations, 20);
    return outcome.last.total_ps;
}

// 1.4 MB take 1400 us at 1 GB/s; headers and gaps of packets of 2 KiB add less than a tenth.
TEST(VerbsBandwidth, IsThatOfTheSlowerEndOfACable)
{
    EXPECT_BETWEEN(writes_ps(1000, 4000), 1400000000, 1540000000);
    EXPECT_BETWEEN(writes_ps(4000, 1000), 1400000000, 1540000000);
    EXPECT_LT(writes_ps(4000, 4000), 700000000);
}

// Twenty writes of 8 B each way, where each call of that node's library takes so long.
static uint64_t both_ways_ps(uint32_t slow_node, uint64_t call_ps)
{
    struct scn_scenario *scenario = pair_load();
    struct scn_run *run = run_make(scenario, SCN_WORKLOAD_VERBS_BANDWIDTH, SCN_DEVICE_IBSIM0, SCN_OPERATION_WRITE);
    scenario->nodes[slow_node].host.call_ps = call_ps;
    run->verbs.bidirectional = true;
    run->bytes[0] = 8;
    run->bytes_count = 1;
    const struct outcome outcome = run_points(scenario);
    scn_free(scenario);
    return outcome.last.total_ps;
}

// The peer's writes take a call each, while those of the node are complete long before.
TEST(VerbsBandwidth, OfBothWaysLastsUntilTheLaterEnd)
{
    const uint64_t call_ps = 20000000;
    EXPECT_GE(both_ways_ps(0, call_ps), 20 * call_ps);
    EXPECT_GE(both_ways_ps(1, call_ps), 20 * call_ps);
}

// As many repetitions as fit into the volume, but at least 4 and at most the iterations.
TEST(VerbsBandwidth, RepeatsAMessageAsOftenAsFitsIntoTheVolume)
{
    static const struct {
        uint64_t bytes, operations;
    } points[] = {{8, 20}, {10000, 7}, {70000, 4}};
    for (unsigned i = 0; i < sizeof points / sizeof points[0]; i++) {
        TEST_TRACE("%llu B", (unsigned long long)points[i].bytes);
        struct scn_scenario *scenario = pair_load();
        struct scn_run *run = run_make(scenario, SCN_WORKLOAD_VERBS_BANDWIDTH, SCN_DEVICE_IBSIM0, SCN_OPERATION_SEND);
        run->verbs.volume_bytes = 70000;
        run->bytes[0] = points[i].bytes;
        run->bytes_count = 1;
        EXPECT_EQ(run_points(scenario).last.operations, points[i].operations);
        scn_free(scenario);
    }
}

static void expect_greatest(enum scn_device device)
{
    struct scn_scenario *scenario = pair_load();
    struct scn_run *run = run_make(scenario, SCN_WORKLOAD_VERBS_BANDWIDTH, device, SCN_OPERATION_SEND);
    run->verbs.queue_pairs = 16;
    run->verbs.depth = 8160;
    run->verbs.receive_depth = run->verbs.cq_mod = 8192;
    (void)run_points(scenario);
    scn_free(scenario);
}

TEST(VerbsBandwidth, TakesTheGreatestDepthsOfScenarios)
{
    expect_greatest(SCN_DEVICE_TCA0);
    expect_greatest(SCN_DEVICE_IBSIM0);
}

TEST(VerbsLatency, KnowsUnreliableConnectionsAndDatagrams)
{
    const struct {
        enum scn_transport transport;
        enum scn_operation operation;
        uint64_t most_bytes;
    } cases[] = {{SCN_TRANSPORT_UC, SCN_OPERATION_SEND, 70000},
                 {SCN_TRANSPORT_UC, SCN_OPERATION_WRITE, 70000},
                 {SCN_TRANSPORT_UC, SCN_OPERATION_WRITE_IMM, 70000},
                 {SCN_TRANSPORT_UD, SCN_OPERATION_SEND, 2048},
                 {SCN_TRANSPORT_UD, SCN_OPERATION_SEND_IMM, 2048}};
    struct scn_scenario *scenario = pair_load();
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scn_run *run = run_make(scenario, SCN_WORKLOAD_VERBS_LATENCY, SCN_DEVICE_IBSIM0, cases[i].operation);
        run->verbs.transport = cases[i].transport;
        run->bytes[3] = cases[i].most_bytes;
        (void)run_points(scenario);
        run->workload = SCN_WORKLOAD_VERBS_BANDWIDTH;
        (void)run_points(scenario);
    }
    scn_free(scenario);
}

// An unreliable message that arrives before its receive is posted is lost, and the run would never end.
TEST(VerbsLatency, WaitsForAPeerThatIsSlowToGetReady)
{
    struct scn_scenario *scenario = pair_load();
    struct scn_run *run = run_make(scenario, SCN_WORKLOAD_VERBS_LATENCY, SCN_DEVICE_IBSIM0, SCN_OPERATION_SEND);
    run->verbs.transport = SCN_TRANSPORT_UD;
    run->bytes_count = 1;
    run->verbs.receive_depth = 1;
    scenario->nodes[1].host.call_ps *= 1000;
    (void)run_points(scenario);
    scn_free(scenario);
}

static uint64_t latency_ps(enum scn_device device, enum scn_operation operation, uint32_t peer, uint32_t inline_bytes)
{
    struct scn_scenario *scenario = pair_load();
    struct scn_run *run = run_make(scenario, SCN_WORKLOAD_VERBS_LATENCY, device, operation);
    run->peer = peer;
    run->bytes[0] = 8;
    run->bytes_count = 1;
    run->verbs.inline_bytes = inline_bytes;
    const struct outcome outcome = run_points(scenario);
    scn_free(scenario);
    return outcome.last.total_ps / outcome.last.operations;
}

TEST(VerbsLatency, IsHalfARoundTripOfAMessageAndAllOfARead)
{
    uint64_t send_ps = latency_ps(SCN_DEVICE_IBSIM0, SCN_OPERATION_SEND, 1, 0);
    uint64_t read_ps = latency_ps(SCN_DEVICE_IBSIM0, SCN_OPERATION_READ, 1, 0);
    EXPECT_BETWEEN(send_ps, 700000, 1500000); // ConnectX-3 QDR: about a microsecond
    EXPECT_GT(read_ps, send_ps);
    EXPECT_LT(read_ps, 2 * send_ps);
}

// The time of half a round trip of 8 B with these costs of a library.
static uint64_t library_ps(uint64_t device_line_ps, uint64_t lock_ps)
{
    struct scn_scenario *scenario = pair_load();
    struct scn_run *run = run_make(scenario, SCN_WORKLOAD_VERBS_LATENCY, SCN_DEVICE_TCA0, SCN_OPERATION_SEND);
    run->bytes[0] = 8;
    run->bytes_count = 1;
    for (unsigned i = 0; i < 2; i++) {
        scenario->nodes[i].host.device_line_ps = device_line_ps;
        scenario->nodes[i].host.lock_ps = lock_ps;
    }
    const struct outcome outcome = run_points(scenario);
    scn_free(scenario);
    return outcome.last.total_ps / outcome.last.operations;
}

// The path of a message has the lines of slot and pair at the sender, of pair and packet at the receiver, and sometimes
// of the status word; and the locks of a post and of the poll that finds the message.
TEST(VerbsLatency, OfALibraryCountsItsLocksAndTheLinesThatABoardHadLast)
{
    const uint64_t cost_ps = 100000;
    uint64_t free_ps = library_ps(0, 0);
    EXPECT_BETWEEN(library_ps(cost_ps, 0) - free_ps, 4 * cost_ps, 7 * cost_ps);
    EXPECT_BETWEEN(library_ps(0, cost_ps) - free_ps, 2 * cost_ps, 6 * cost_ps);
}

TEST(VerbsLatency, IsShorterWhereTheMessageIsInTheRequest)
{
    uint64_t inlined_ps = latency_ps(SCN_DEVICE_IBSIM0, SCN_OPERATION_SEND, 1, SCN_INLINE_DEFAULT);
    EXPECT_EQ(inlined_ps, latency_ps(SCN_DEVICE_IBSIM0, SCN_OPERATION_SEND, 1, 8));
    EXPECT_LT(inlined_ps + 100000, latency_ps(SCN_DEVICE_IBSIM0, SCN_OPERATION_SEND, 1, 7));
}

TEST(VerbsLatency, GoesThroughTheAdapterFromANodeToItself)
{
    uint64_t far_ps = latency_ps(SCN_DEVICE_IBSIM0, SCN_OPERATION_FETCH_ADD, 1, 0);
    uint64_t own_ps = latency_ps(SCN_DEVICE_IBSIM0, SCN_OPERATION_FETCH_ADD, 0, 0);
    EXPECT_LT(own_ps, far_ps);
    EXPECT_GT(own_ps, far_ps / 2);
}

// --- the interfering flow -------------------------------------------------------------------------------------------

static struct outcome beside_run_deep(enum scn_workload workload, enum scn_operation beside, uint64_t bytes,
                                      uint32_t depth)
{
    struct scn_scenario *scenario = pair_load();
    struct scn_run *run = run_make(scenario, workload, SCN_DEVICE_IBSIM0, SCN_OPERATION_FETCH_ADD);
    run->iterations = 200;
    run->beside = (struct scn_beside){.given = beside != SCN_OPERATION_NONE,
                                      .operation = beside,
                                      .bytes = bytes,
                                      .depth = depth,
                                      .cq_mod = depth < 16 ? depth : 16};
    struct outcome outcome = run_points(scenario);
    scn_free(scenario);
    return outcome;
}

static struct outcome beside_run(enum scn_workload workload, enum scn_operation beside, uint64_t bytes)
{
    return beside_run_deep(workload, beside, bytes, 64);
}

TEST(VerbsBeside, EveryFlowBesideTakesItsTimeFromTheMeasuredOne)
{
    const uint64_t alone_ps = beside_run(SCN_WORKLOAD_VERBS_LATENCY, SCN_OPERATION_NONE, 0).last.total_ps;
    for (unsigned i = SCN_OPERATION_SEND; i <= SCN_OPERATION_FETCH_ADD; i++) {
        EXPECT_GT(beside_run(SCN_WORKLOAD_VERBS_LATENCY, (enum scn_operation)i, 8).last.total_ps, alone_ps);
    }
}

TEST(VerbsBeside, TwoEqualFlowsShareTheAtomicsOfAnAdapter)
{
    uint64_t alone_ps = beside_run(SCN_WORKLOAD_VERBS_BANDWIDTH, SCN_OPERATION_NONE, 0).last.total_ps;
    uint64_t both_ps = beside_run(SCN_WORKLOAD_VERBS_BANDWIDTH, SCN_OPERATION_FETCH_ADD, 8).last.total_ps;
    EXPECT_BETWEEN(both_ps * 10 / alone_ps, 18, 22);
}

// Of the atomics that wait for the adapter, one is of the flow beside: it takes much less than half of them.
TEST(VerbsBeside, AFlowWithOneRequestTakesLessThanADeepOne)
{
    uint64_t alone_ps = beside_run(SCN_WORKLOAD_VERBS_BANDWIDTH, SCN_OPERATION_NONE, 0).last.total_ps;
    uint64_t both_ps = beside_run_deep(SCN_WORKLOAD_VERBS_BANDWIDTH, SCN_OPERATION_FETCH_ADD, 8, 1).last.total_ps;
    EXPECT_BETWEEN(both_ps * 10 / alone_ps, 10, 14);
}

TEST(VerbsBeside, GivesTheSameTimesTwice)
{
    const struct outcome first = beside_run(SCN_WORKLOAD_VERBS_BANDWIDTH, SCN_OPERATION_SEND_IMM, 5000);
    const struct outcome second = beside_run(SCN_WORKLOAD_VERBS_BANDWIDTH, SCN_OPERATION_SEND_IMM, 5000);
    EXPECT_EQ(first.last.total_ps, second.last.total_ps);
    EXPECT_EQ(first.result.events, second.result.events);
}

// --- refused runs ----------------------------------------------------------------------------------------------------

static void expect_refused(void (*change)(struct scn_scenario *scenario, struct scn_run *run), enum scn_device device,
                           enum sim_status status, const char *why)
{
    struct scn_scenario *scenario = pair_load();
    struct scn_run *run = run_make(scenario, SCN_WORKLOAD_VERBS_LATENCY, device, SCN_OPERATION_SEND);
    struct outcome outcome = {0};
    const struct plat_hooks hooks = {.ctx = &outcome, .point = note_point};
    change(scenario, run);
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &outcome.result), status);
    EXPECT_CONTAINS(outcome.result.text, why);
    EXPECT_EQ(outcome.points, 0);
    scn_free(scenario);
}

static void hca_remove(struct scn_scenario *scenario, struct scn_run *run)
{
    (void)run;
    scenario->nodes[1].hca = (struct scn_hca){0};
    scenario->ib_cable_count = 0;
}

static void peer_itself(struct scn_scenario *scenario, struct scn_run *run)
{
    (void)scenario;
    run->peer = run->node;
}

static void inline_too_long(struct scn_scenario *scenario, struct scn_run *run)
{
    (void)scenario;
    run->verbs.inline_bytes = 100000;
}

static void write_from_gpu(struct scn_scenario *scenario, struct scn_run *run)
{
    (void)scenario;
    run->verbs.operation = SCN_OPERATION_WRITE;
    run->from = SCN_MEMORY_GPU0;
}

TEST(VerbsLatency, RefusesWhatDevicesCannotDo)
{
    expect_refused(write_from_gpu, SCN_DEVICE_TCA0, SIM_OK, "polls the last byte in host memory");
    expect_refused(hca_remove, SCN_DEVICE_IBSIM0, SIM_ERR_INVALID, "node1 has no HCA");
    expect_refused(peer_itself, SCN_DEVICE_TCA0, SIM_ERR_INVALID, "tca0 needs two joined nodes");
    expect_refused(inline_too_long, SCN_DEVICE_TCA0, SIM_OK, "ibv_create_qp: Invalid argument");
    expect_refused(inline_too_long, SCN_DEVICE_IBSIM0, SIM_OK, "ibv_create_qp: Invalid argument");
}
