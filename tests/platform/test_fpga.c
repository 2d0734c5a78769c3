// The FPGA in a node: the workload that measures it, its slot among those of the other devices, and errors of wrong
// descriptors.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/site.h"

#include "sim/kernel/trace.h"
#include "sim/platform/platform.h"
#include "verbs-shim/fpga/fpga_driver.h"

#define SCENARIO TCASIM_SOURCE_DIR "/scenarios/figures/kobayashi2018-table2-latency.yaml"
#define NOWHERE  0x3800000000ull // between the FPGA's windows and the board's

enum { FROM_GPU, TO_GPU, FROM_GPU_VIA_CPU, TO_GPU_VIA_CPU, FROM_HOST, TO_HOST, RUNS };

static struct scn_scenario *load(const char *set)
{
    const struct scn_load_options options = {
        .configs_dir = TCASIM_SOURCE_DIR "/configs", .sets = &set, .set_count = set != NULL ? 1 : 0};
    struct scn_scenario *scenario = NULL;
    struct scn_messages messages = {0};
    EXPECT_EQ(scn_load(SCENARIO, &options, &scenario, &messages), SIM_OK);
    EXPECT_EQ(messages.count, 0);
    return scenario;
}

struct outcome {
    struct plat_result result;
    unsigned points;
    struct plat_point last;
};

static void point_note(void *ctx, const struct plat_point *point)
{
    struct outcome *outcome = ctx;
    outcome->points++;
    outcome->last = *point;
}

static struct outcome measure(const struct scn_scenario *scenario, uint32_t run)
{
    struct outcome outcome = {0};
    const struct plat_hooks hooks = {.ctx = &outcome, .point = point_note};
    EXPECT_EQ(plat_run_series(scenario, run, NULL, &hooks, &outcome.result), SIM_OK);
    return outcome;
}

// --- the program -----------------------------------------------------------------------------------------------------

TEST(FpgaTransfer, MovesEveryByteEveryWay)
{
    struct scn_scenario *scenario = load("runs.*.bytes=[4 B, 4100 B, 65532 B, 1048572 B]");
    for (uint32_t run = 0; run < RUNS; run++) {
        const struct outcome outcome = measure(scenario, run);
        EXPECT_STREQ(outcome.result.text, "");
        EXPECT_EQ(outcome.result.outcome, SIM_RUN_DONE);
        EXPECT_EQ(outcome.points, 4);
        EXPECT_EQ(outcome.last.bytes, 1048572);
        EXPECT_EQ(outcome.last.operations, 10);
    }
    scn_free(scenario);
}

TEST(FpgaTransfer, DirectIsTheFpgasCounterOf4ns)
{
    struct scn_scenario *scenario = load(NULL);
    for (uint32_t run = FROM_GPU; run <= TO_GPU; run++) {
        const struct outcome outcome = measure(scenario, run);
        EXPECT_EQ(outcome.last.min_ps, outcome.last.max_ps);
        EXPECT_EQ(outcome.last.min_ps % 4000, 0);
    }
    scn_free(scenario);
}

TEST(FpgaTransfer, ViaTheCpuIsTheDmaAndACopyAddedUp)
{
    struct scn_scenario *scenario = load(NULL);
    uint64_t fixed_ps = scenario->nodes[0].gpus[0].copy_call_ps + scenario->nodes[0].gpus[0].copy_setup_ps;
    uint64_t from_ps = measure(scenario, FROM_GPU_VIA_CPU).last.min_ps,
             to_ps = measure(scenario, TO_GPU_VIA_CPU).last.min_ps;
    uint64_t read_ps = measure(scenario, FROM_HOST).last.min_ps, write_ps = measure(scenario, TO_HOST).last.min_ps;
    EXPECT_BETWEEN(from_ps, read_ps + fixed_ps + 100 * NS, read_ps + fixed_ps + 1000 * NS);
    EXPECT_BETWEEN(to_ps, write_ps + fixed_ps + 100 * NS, write_ps + fixed_ps + 1000 * NS);
    scn_free(scenario);
}

TEST(FpgaTransfer, ReachesTheGpuOfTheOtherSocketAcrossQpi)
{
    struct scn_scenario *near = load(NULL);
    uint64_t near_ps = measure(near, FROM_GPU).last.min_ps;
    const char *const sets[] = {"runs.0.from=gpu1", "nodes.0.fpga.socket=1"};
    for (unsigned i = 0; i < 2; i++) {
        struct scn_scenario *far = load(sets[i]);
        const struct outcome outcome = measure(far, FROM_GPU);
        EXPECT_STREQ(outcome.result.text, "");
        EXPECT_BETWEEN(outcome.last.min_ps - near_ps, 115 * NS, 400 * NS);
        scn_free(far);
    }
    scn_free(near);
}

TEST(FpgaTransfer, GivesTheSameTimesTwice)
{
    struct outcome outcomes[2];
    for (unsigned i = 0; i < 2; i++) {
        struct scn_scenario *scenario = load("runs.*.bytes=100000 B");
        outcomes[i] = measure(scenario, FROM_GPU_VIA_CPU);
        scn_free(scenario);
    }
    EXPECT_EQ(outcomes[0].last.total_ps, outcomes[1].last.total_ps);
    EXPECT_EQ(outcomes[0].result.events, outcomes[1].result.events);
}

TEST(FpgaTransfer, EndsWithItsTimeWhereverItIs)
{
    for (unsigned us = 5; us < 400; us += 45) { // in the set-up, in a DMA, in a copy
        char set[64];
        snprintf(set, sizeof set, "time_limit=%u us", us);
        struct scn_scenario *scenario = load(set);
        scenario->runs[FROM_GPU_VIA_CPU].bytes[0] = 262144;
        const struct outcome outcome = measure(scenario, FROM_GPU_VIA_CPU);
        EXPECT_EQ(outcome.result.outcome, SIM_RUN_TIME_LIMIT);
        EXPECT_EQ(outcome.points, 0);
        scn_free(scenario);
    }
}

static void expect_failed(struct scn_scenario *scenario, const char *why)
{
    const struct outcome outcome = measure(scenario, 0);
    EXPECT_TRUE(outcome.result.failed);
    EXPECT_CONTAINS(outcome.result.text, why);
    EXPECT_EQ(outcome.points, 0);
    scn_free(scenario);
}

TEST(FpgaTransfer, RefusesWhatItCannotDo)
{
    struct scn_scenario *scenario = load(NULL);
    scenario->nodes[0].fpga.given = false;
    expect_failed(scenario, "the node has no FPGA");
    scenario = load(NULL);
    scenario->runs[0].from = SCN_MEMORY_FPGA;
    expect_failed(scenario, "one end is the FPGA");
    scenario = load(NULL);
    scenario->runs[0].method = SCN_METHOD_REGISTER;
    expect_failed(scenario, "neither direct nor");
    scenario = load(NULL);
    scenario->runs[0].bytes[0] = 1 << 20; // its length in a descriptor would be 0
    expect_failed(scenario, "writing the descriptor");
}

// --- errors ---------------------------------------------------------------------------------------------------------

struct attempt {
    struct site site;
    enum fpga_direction direction;
    uint64_t address, offset;
    uint32_t bytes;
    enum fpga_error error;
};

static void site_load(struct site *site)
{
    *site = (struct site){.scenario = load(NULL)};
    site_build(site);
}

static void site_unload(struct site *site)
{
    plat_machine_destroy(site->machine);
    scn_free(site->scenario);
}

static void try_descriptor(void *arg, peach2_handle_t *board)
{
    struct attempt *attempt = arg;
    fpga_handle_t *fpga = plat_machine_driver(attempt->site.machine, 0, SCN_DEVICE_ID_FPGA);
    enum fpga_error error = FPGA_ERRORS, again = FPGA_ERRORS;
    (void)board;
    EXPECT_EQ(attempt->direction == FPGA_READ ? fpga_read(fpga, attempt->address, attempt->offset, attempt->bytes, 7)
                                              : fpga_write(fpga, attempt->offset, attempt->address, attempt->bytes, 7),
              0);
    EXPECT_EQ(fpga_wait(fpga, attempt->direction, 7, 0, &error), attempt->error == FPGA_OK ? 0 : -EREMOTEIO);
    EXPECT_EQ(error, attempt->error);
    // The controller works again afterwards.
    EXPECT_EQ(fpga_read(fpga, 0, 0, 64, 8), 0);
    EXPECT_EQ(fpga_wait(fpga, FPGA_READ, 8, 0, &again), 0);
}

static void expect_error(enum fpga_direction direction, uint64_t address, uint64_t offset, uint32_t bytes,
                         enum fpga_error error)
{
    struct attempt attempt = {
        .direction = direction, .address = address, .offset = offset, .bytes = bytes, .error = error};
    site_load(&attempt.site);
    plat_machine_set_program(attempt.site.machine, 0, try_descriptor, &attempt);
    EXPECT_EQ(plat_machine_run(attempt.site.machine), SIM_RUN_DONE);
    EXPECT_NULL(plat_machine_failure(attempt.site.machine));
    EXPECT_EQ(plat_machine_live_packets(attempt.site.machine), 0);
    EXPECT_EQ(site_counter(&attempt.site, "node0.memory", "written_bytes"), 0);
    site_unload(&attempt.site);
}

TEST(FpgaErrors, NameADescriptorThatCannotBe)
{
    expect_error(FPGA_READ, 0x1000, 0, 0, FPGA_ERROR_LENGTH);
    expect_error(FPGA_WRITE, 0x1002, 0, 64, FPGA_ERROR_MISALIGNED);
    expect_error(FPGA_READ, 0x1000, (2 << 20) - 32, 64, FPGA_ERROR_RANGE);
}

TEST(FpgaErrors, NameASourceThatNobodyClaims)
{
    expect_error(FPGA_READ, NOWHERE, 0, 8192, FPGA_ERROR_UR);
}

TEST(FpgaErrors, NameGpuMemoryThatIsNotPinned)
{
    expect_error(FPGA_READ, 0x1000000000ull, 0, 64, FPGA_ERROR_UR);
}

TEST(FpgaErrors, ForgetAWriteThatNobodyClaims)
{
    expect_error(FPGA_WRITE, NOWHERE, 0, 64, FPGA_OK); // a posted write has no answer
    expect_error(FPGA_WRITE, 0x1000000000ull, 0, 64, FPGA_OK);
}

// --- its slot in the node -------------------------------------------------------------------------------------------

// The second BAR of the first row of devices.def.
static const enum backend_bar control_bar = BACKEND_BAR_DEVICE0 + 1;

static void access_control_wide(void *arg, peach2_handle_t *board)
{
    const struct site *site = arg;
    const struct backend *backend = fpga_backend(plat_machine_driver(site->machine, 0, SCN_DEVICE_ID_FPGA));
    uint64_t value = 0;
    (void)board;
    backend->ops->write(backend->ctx, control_bar, FPGA_DESCRIPTOR, 1, 8);
    EXPECT_EQ(backend->ops->read(backend->ctx, control_bar, FPGA_STATUS, 8, &value), -EIO);
    EXPECT_EQ(backend->ops->read(backend->ctx, control_bar, FPGA_WORDS, 4, &value), 0);
    EXPECT_EQ(value, 0); // no word has arrived
}

TEST(FpgaInANode, TakesNothingBut32BitsForControl)
{
    struct site site;
    site_load(&site);
    site_run(&site, access_control_wide);
    EXPECT_EQ(site_counter(&site, "node0.fpga", "control_ignored"), 2);
    site_unload(&site);
}

static void move_by_both(void *arg, peach2_handle_t *board)
{
    const struct site *site = arg;
    fpga_handle_t *fpga = plat_machine_driver(site->machine, 0, SCN_DEVICE_ID_FPGA);
    struct backend_buffer source = site_pinned(board, 65536), destination = site_pinned(board, 65536);
    site_fill(source.address, source.bytes, 5);
    EXPECT_EQ(fpga_read(fpga, source.bus_address, 4096, 65536, 1), 0);
    EXPECT_EQ(fpga_wait(fpga, FPGA_READ, 1, 0, NULL), 0);
    EXPECT_EQ(site_dma(board, 0, fpga_memory_bus_address(fpga, 4096), destination.bus_address, 65536), PEACH2_DMA_OK);
    EXPECT_TRUE(site_is_filled(destination.address, destination.bytes, 5));
}

static void site_load_with_board(struct site *site)
{
    *site = (struct site){.scenario = load(NULL)};
    struct scn_scenario *line = platform_fixture_line(1);
    site->scenario->nodes[0].board = line->nodes[0].board;
    site->scenario->nodes[0].slot = line->nodes[0].slot;
    platform_fixture_free(line);
    site_build(site);
}

// The requester IDs of reads on each link.
struct askers {
    uint64_t fpga, board;
};

static void asker_note(void *ctx, const struct sim_trace_record *record)
{
    struct askers *askers = ctx;
    const char *component = record->component;
    const struct sim_trace_point *point = record->point;
    const uint64_t *values = record->values;
    for (unsigned i = 0; i < point->field_count && strcmp(point->name, "tlp_sent") == 0; i++) {
        bool is_asker =
            strcmp(point->fields[i].name, "requester") == 0 && values[i] != SIM_TRACE_ABSENT && values[i] != 0;
        if (is_asker && strcmp(component, "node0.fpga.slot.1") == 0) {
            askers->fpga = askers->fpga > values[i] ? askers->fpga : values[i];
        } else if (is_asker && strcmp(component, "node0.slot.1") == 0) {
            askers->board = values[i];
        }
    }
}

TEST(FpgaInANode, HasARequesterIdOfItsOwn)
{
    struct site site;
    struct askers askers = {0};
    site_load_with_board(&site);
    sim_trace_set_sink(plat_machine_sim(site.machine), asker_note, &askers);
    site_run(&site, move_by_both);
    EXPECT_EQ(askers.board, 0x100);
    EXPECT_EQ(askers.fpga, 0x200 + 0x100 * SCN_GPUS_MAX); // after those of the GPUs
    site_unload(&site);
}

TEST(FpgaInANode, AndABoardReadEachOthersMemory)
{
    struct site site;
    site_load_with_board(&site);
    site_run(&site, move_by_both);
    EXPECT_EQ(site_counter(&site, "node0.fpga", "unexpected_completions"), 0);
    site_unload(&site);
}
