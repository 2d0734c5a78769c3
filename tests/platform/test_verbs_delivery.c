// The workload verbs-delivery: what it counts with and without a fault, on both devices.
#include <string.h>

#include "sim/platform/platform.h"
#include "tests/shim/test.h"

#define PAIR TCASIM_SOURCE_DIR "/tests/platform/verbs-pair.yaml"
#define US   1000000ull

struct outcome {
    struct plat_result result;
    struct plat_point point;
    struct plat_fault fault;
    uint64_t requests, completed, failed, flushed, received, arrived, torn, missing;
};

static void note_point(void *ctx, const struct plat_point *point)
{
    ((struct outcome *)ctx)->point = *point;
}

static void note_fault(void *ctx, const struct plat_fault *fault)
{
    ((struct outcome *)ctx)->fault = *fault;
}

static void note_counter(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct outcome *o = ctx;
    const struct {
        const char *name;
        uint64_t *sum;
    } sums[] = {{"requests", &o->requests}, {"completed", &o->completed}, {"failed", &o->failed},
                {"flushed", &o->flushed},   {"received", &o->received},   {"arrived", &o->arrived},
                {"torn", &o->torn},         {"missing", &o->missing}};
    for (size_t i = 0; strstr(component, ".program") != NULL && i < sizeof sums / sizeof sums[0]; i++) {
        *sums[i].sum += strcmp(desc->name, sums[i].name) == 0 ? value : 0;
    }
}

// At most `depth` requests at a time.
static struct outcome deliver_deep(enum scn_device device, enum scn_operation operation, enum scn_memory memory,
                                   const struct scn_fault *fault, uint32_t depth)
{
    const struct scn_load_options options = {.configs_dir = TCASIM_SOURCE_DIR "/configs"};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    struct outcome outcome = {0};
    const struct plat_hooks hooks = {
        .ctx = &outcome, .point = note_point, .fault = note_fault, .counter = note_counter};
    EXPECT_EQ(scn_load(PAIR, &options, &scenario, &messages), SIM_OK);
    for (uint32_t i = 0; i < 2; i++) {
        scenario->nodes[i].board.fidelity = SCN_FIDELITY_TWIN;
    }
    struct scn_run *run = &scenario->runs[0];
    bool atomic = operation == SCN_OPERATION_COMPARE_SWAP || operation == SCN_OPERATION_FETCH_ADD;
    run->workload = SCN_WORKLOAD_VERBS_DELIVERY;
    run->method = SCN_METHOD_NONE;
    run->node = 0;
    run->peer = 1;
    run->from = run->to = memory;
    run->iterations = 30;
    run->bytes[0] = atomic ? 8 : 9000;
    run->bytes_count = 1;
    run->verbs.device = device;
    run->verbs.operation = operation;
    run->verbs.depth = depth;
    run->verbs.qp_timeout = 5;
    run->verbs.retry_count = 2;
    if (fault != NULL) {
        scenario->faults[scenario->fault_count++] = *fault;
    }
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &outcome.result), SIM_OK);
    EXPECT_STREQ(outcome.result.text, "");
    EXPECT_EQ(outcome.result.outcome, SIM_RUN_DONE);
    scn_free(scenario);
    return outcome;
}

static struct outcome deliver(enum scn_device device, enum scn_operation operation, enum scn_memory memory,
                              const struct scn_fault *fault)
{
    return deliver_deep(device, operation, memory, fault, 8);
}

static bool is_announced(enum scn_operation operation)
{
    return operation == SCN_OPERATION_SEND || operation == SCN_OPERATION_SEND_IMM ||
           operation == SCN_OPERATION_WRITE_IMM;
}

static void expect_all(enum scn_device device, enum scn_memory memory)
{
    for (unsigned i = SCN_OPERATION_SEND; i <= SCN_OPERATION_FETCH_ADD; i++) {
        TEST_TRACE("operation %u", i);
        enum scn_operation operation = (enum scn_operation)i;
        struct outcome o = deliver(device, operation, memory, NULL);
        EXPECT_EQ(o.requests, 30);
        EXPECT_EQ(o.completed, 30);
        EXPECT_EQ(o.arrived, 30);
        EXPECT_EQ(o.received, is_announced(operation) ? 30 : 0);
        EXPECT_EQ(o.failed + o.flushed + o.torn + o.missing, 0);
        EXPECT_EQ(o.point.operations, 30);
    }
}

TEST(VerbsDelivery, FindsEveryMessageOfEachOperation)
{
    expect_all(SCN_DEVICE_TCA0, SCN_MEMORY_HOST);
    expect_all(SCN_DEVICE_IBSIM0, SCN_MEMORY_HOST);
    expect_all(SCN_DEVICE_TCA0, SCN_MEMORY_GPU0);
    expect_all(SCN_DEVICE_IBSIM0, SCN_MEMORY_GPU0);
}

static struct outcome expect_told(enum scn_device device, enum scn_operation operation, const struct scn_fault *fault)
{
    struct outcome o = deliver(device, operation, SCN_MEMORY_HOST, fault);
    EXPECT_EQ(o.requests, o.completed + o.failed + o.flushed);
    EXPECT_EQ(o.missing, 0);
    EXPECT_GE(o.arrived, o.completed);
    EXPECT_LE(o.arrived + o.torn, o.requests);
    EXPECT_LE(o.failed, 1);
    return o;
}

static const enum scn_operation operations[] = {SCN_OPERATION_SEND, SCN_OPERATION_WRITE, SCN_OPERATION_READ,
                                                SCN_OPERATION_FETCH_ADD};

// Whatever was told to be there is there, at any time of the fault.
static void expect_told_if_pulled(enum scn_device device, enum scn_operation operation, uint64_t at_ps, uint64_t for_ps)
{
    TEST_TRACE("operation %u, at %llu ps for %llu ps", (unsigned)operation, (unsigned long long)at_ps,
               (unsigned long long)for_ps);
    const struct scn_fault fault = {.ends = {.given = device == SCN_DEVICE_TCA0},
                                    .ib_ends = {.given = device == SCN_DEVICE_IBSIM0},
                                    .at_ps = at_ps,
                                    .after_tlps = SCN_NOT_GIVEN,
                                    .for_ps = for_ps};
    struct outcome o = expect_told(device, operation, &fault);
    EXPECT_EQ(o.received, is_announced(operation) ? o.arrived : 0);
    EXPECT_EQ(o.failed, o.requests < 30 || o.flushed > 0 || o.completed < 30);
    if (device == SCN_DEVICE_IBSIM0 && for_ps < 100 * US) { // less than the retries last
        EXPECT_EQ(o.completed, 30);
        EXPECT_EQ(o.arrived, 30);
    }
}

TEST(VerbsDelivery, TellsTheProgramOfEveryMessageThatIsNotThere)
{
    for (uint64_t i = 0; i < 24; i++) {
        uint64_t for_ps = i % 3 == 0 ? SCN_NOT_GIVEN : i % 3 * 31 * US;
        expect_told_if_pulled(SCN_DEVICE_TCA0, operations[i % 4], 40 * US + i * 3456789, for_ps);
        expect_told_if_pulled(SCN_DEVICE_IBSIM0, operations[i % 4], 5 * US + i * 1234567, for_ps);
    }
}

// No packet is queued or in flight when the cable is pulled: none is lost with it, all are sent to a dead port.
TEST(VerbsDelivery, DropsThePacketsOfAnInfiniBandCableThatIsPulledBeforeTheFirst)
{
    const struct scn_fault fault = {
        .ib_ends = {.given = true}, .at_ps = 0, .after_tlps = SCN_NOT_GIVEN, .for_ps = SCN_NOT_GIVEN};
    struct outcome o = deliver(SCN_DEVICE_IBSIM0, SCN_OPERATION_WRITE, SCN_MEMORY_HOST, &fault);
    EXPECT_TRUE(o.fault.happened);
    EXPECT_EQ(o.arrived, 0);
    EXPECT_STREQ(o.fault.ends[0].name, "node0");
    EXPECT_EQ(o.fault.ends[0].lost, 0);
    EXPECT_GT(o.fault.ends[0].dropped, 0);
}

// One request at a time: none is under way behind the one that fails, and none follows it.
TEST(VerbsDelivery, EndsWithTheFirstRequestThatFails)
{
    const struct scn_fault fault = {
        .ib_ends = {.given = true}, .at_ps = 0, .after_tlps = SCN_NOT_GIVEN, .for_ps = SCN_NOT_GIVEN};
    struct outcome o = deliver_deep(SCN_DEVICE_IBSIM0, SCN_OPERATION_WRITE, SCN_MEMORY_HOST, &fault, 1);
    EXPECT_EQ(o.requests, 1);
    EXPECT_EQ(o.failed, 1);
    EXPECT_EQ(o.flushed, 0);
}

// The programs give up after some retries of the transport timer, the cable would be put back after a second.
TEST(VerbsDelivery, DoesNotWaitForAnInfiniBandCableWhenItsProgramsHaveEnded)
{
    const struct scn_fault fault = {
        .ib_ends = {.given = true}, .at_ps = 5 * US, .after_tlps = SCN_NOT_GIVEN, .for_ps = 1000000 * US};
    struct outcome o = deliver(SCN_DEVICE_IBSIM0, SCN_OPERATION_WRITE, SCN_MEMORY_HOST, &fault);
    EXPECT_TRUE(o.fault.happened);
    EXPECT_EQ(o.fault.back_ps, 0);
    EXPECT_EQ(o.failed, 1);
    EXPECT_LT(o.result.simulated_ps, 10000 * US);
}

// At either end; the device comes back, or stays away.
static void expect_told_if_reset(enum scn_device device, enum scn_operation operation, uint32_t node, uint64_t at_ps,
                                 uint64_t for_ps)
{
    TEST_TRACE("operation %u, node%u at %llu ps for %llu ps", (unsigned)operation, node, (unsigned long long)at_ps,
               (unsigned long long)for_ps);
    const struct scn_fault fault = {.kind = SCN_FAULT_RESET,
                                    .node = node,
                                    .device = device == SCN_DEVICE_TCA0 ? SCN_FAULT_BOARD : SCN_FAULT_HCA,
                                    .at_ps = at_ps,
                                    .after_tlps = SCN_NOT_GIVEN,
                                    .for_ps = for_ps};
    struct outcome o = expect_told(device, operation, &fault);
    EXPECT_LE(o.received, is_announced(operation) ? o.arrived : 0); // a receive may be flushed
    EXPECT_EQ(o.failed + o.flushed == 0, o.completed == 30);
    EXPECT_LT(o.result.simulated_ps, 5000 * US);
}

TEST(VerbsDelivery, TellsTheProgramOfEveryMessageThatADeviceLost)
{
    for (uint64_t i = 0; i < 24; i++) {
        uint64_t for_ps = i % 3 == 0 ? SCN_NOT_GIVEN : i % 3 * 11 * US;
        expect_told_if_reset(SCN_DEVICE_TCA0, operations[i % 4], i / 4 % 2, 40 * US + i * 3456789, for_ps);
        expect_told_if_reset(SCN_DEVICE_IBSIM0, operations[i % 4], i / 4 % 2, 5 * US + i * 1234567, for_ps);
    }
}
