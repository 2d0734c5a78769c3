#include "platform_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/shim/test.h"

#define NS 1000ull

static const struct scn_host host = {
    .memory_bytes = 64 * MIB,
    .mps_bytes = 256,
    .mrrs_bytes = 4096,
    .rcb_bytes = 64,
    .root_port_tx_ps = 60 * NS,
    .root_port_rx_ps = 60 * NS,
    .memory_read_ps = 150 * NS,
    .memory_write_ps = 100 * NS,
    .memory_reads_max = 32,
    .peer_ps = 100 * NS,
    .peer_reads_max = 8,
    .posted_header_credits = 64,
    .posted_data_credits = 1024,
    .nonposted_header_credits = 32,
    .store_wc_ps = 1 * NS,
    .flush_wc_ps = 60 * NS,
    .store_uc_ps = 60 * NS,
    .load_uc_ps = 40 * NS,
    .load_ps = 2 * NS,
    .poll_ps = 20 * NS,
    .copy_bytes_per_us = 8000,
    .timestamp_ps = 10 * NS,
    .call_ps = 20 * NS,
};

static const struct scn_board board = {
    .given = true,
    .fidelity = SCN_FIDELITY_RTL,
    .clock_mhz = 250,
    .window_base = 0x8000000000ull,
    .ip_tx_ps = 100 * NS,
    .ip_rx_ps = 120 * NS,
    .posted_header_credits = 64,
    .posted_data_credits = 512,
    .nonposted_header_credits = 32,
    .tx_buffer_tlps = 16,
    .dmac_start_cycles = 20,
    .dmac_fetch_cycles = 65535,
    .dmac_finish_cycles = 10,
    .dmac_read_bytes = 512,
    .dmac_read_tags = 16,
    .dmac_prefetch = 4,
};

static const struct scn_link slot = {.generation = 2, .lanes = 8, .flight_ps = 2 * NS};
static const struct scn_link cable = {.generation = 2, .lanes = 8, .flight_ps = 15 * NS};

struct scn_scenario *platform_fixture_line(unsigned nodes)
{
    struct scn_scenario *scenario = calloc(1, sizeof *scenario);
    if (scenario == NULL) {
        abort();
    }
    snprintf(scenario->name, sizeof scenario->name, "fixture");
    scenario->seed = 1;
    scenario->time_limit_ps = 10000000000000ull;
    scenario->silence_limit_ps = 50000000000ull;
    scenario->node_count = nodes;
    for (unsigned i = 0; i < nodes; i++) {
        struct scn_node *node = &scenario->nodes[i];
        snprintf(node->name, sizeof node->name, "node%u", i);
        node->host = host;
        node->board = board;
        node->slot = slot;
    }
    scenario->cable_count = nodes - 1;
    for (unsigned i = 0; i + 1 < nodes; i++) {
        scenario->cables[i] = (struct scn_cable){i, i + 1, SCN_PORT_E, SCN_PORT_W, cable};
    }
    return scenario;
}

static const struct scn_gpu gpu = {
    .model = "Tesla K20",
    .memory_bytes = 64 * MIB,
    .bar_bytes = 256 * MIB,
    .ip_tx_ps = 20 * NS,
    .ip_rx_ps = 20 * NS,
    .posted_header_credits = 64,
    .posted_data_credits = 1024,
    .nonposted_header_credits = 64,
    .tx_buffer_tlps = 32,
    .write_ps = 100 * NS,
    .read_ps = 25 * NS,
    .reads_max = 32,
    .completion_bytes = 64,
    .l2_bytes = 1280 << 10,
    .l2_miss_ps = 27 * NS,
    .copy_engines = 2,
    .copy_reads_max = 32,
    .copy_read_bytes = 512,
    .copy_setup_ps = 1000 * NS,
    .launch_ps = 5000 * NS,
    .memory_bytes_per_us = 208000,
    .flops_per_us = 1170000,
    .copy_call_ps = 5000 * NS,
    .submit_call_ps = 2000 * NS,
    .manage_call_ps = 100000 * NS,
    .staging_bytes = MIB,
    .slot = {.generation = 2, .lanes = 16, .flight_ps = 1 * NS},
};

void platform_fixture_gpus(struct scn_scenario *scenario, uint32_t node, unsigned count)
{
    scenario->nodes[node].gpu_count = count;
    for (unsigned i = 0; i < count; i++) {
        scenario->nodes[node].gpus[i] = gpu;
    }
}

void platform_fixture_free(struct scn_scenario *scenario)
{
    free(scenario);
}

struct scn_run *platform_fixture_run_add(struct scn_scenario *scenario, enum scn_workload workload,
                                         enum scn_method method)
{
    struct scn_run *run = &scenario->runs[scenario->run_count++];
    *run = (struct scn_run){.workload = workload, .method = method, .node = 0, .peer = 1, .iterations = 3, .warmup = 1};
    snprintf(run->series, sizeof run->series, "series");
    return run;
}

void platform_fixture_size_add(struct scn_run *run, uint64_t bytes, uint64_t descriptors)
{
    run->bytes[run->bytes_count++] = bytes;
    run->descriptors_count = 1;
    run->descriptors[0] = descriptors;
}
