#include "bench.h"

#include <stdlib.h>
#include <string.h>

const struct host_core_config bench_costs = {
    .store_wc_ps = 1 * NS,
    .flush_wc_ps = 70 * NS,
    .flush_wc_far_ps = 110 * NS,
    .store_uc_ps = 50 * NS,
    .load_uc_ps = 30 * NS,
    .load_uc_return_ps = 45 * NS,
    .load_ps = 2 * NS,
    .poll_ps = 10 * NS,
    .timestamp_ps = 7 * NS,
    .call_ps = 20 * NS,
    .copy_bytes_per_us = 8000,
};

// --- the device ----------------------------------------------------------------------------------------------------

static void read_answer(struct bench *bench, const pcie_tlp_t *request)
{
    uint64_t line[8];
    for (unsigned i = 0; i < 8; i++) {
        line[i] = bench->answer;
    }
    pcie_tlp_t *answer = pcie_tlp_completion(request, 0x0100, 0, pcie_tlp_byte_count(request), line);
    EXPECT_TRUE(pcie_end_offer(bench->device, answer));
}

static void device_receive(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp)
{
    struct bench *bench = ctx;
    if (tlp->kind == PCIE_TLP_MRD) {
        read_answer(bench, tlp);
    } else if (bench->note_count < NOTES_MAX) {
        struct note *note = &bench->notes[bench->note_count++];
        note->time_ps = sim_now_ps(bench->sim);
        note->address = pcie_tlp_first_byte(tlp);
        note->bytes = pcie_tlp_byte_count(tlp);
        memcpy(note->data, pcie_tlp_data(tlp) + (note->address & 3), note->bytes);
    }
    if (bench->holds) {
        bench->held[bench->held_count++] = tlp;
        return;
    }
    pcie_end_release(end, tlp);
    pcie_tlp_unref(tlp);
}

static void device_ready(void *ctx, pcie_end_t *end)
{
    (void)ctx;
    (void)end;
}

static void device_down(void *ctx, pcie_end_t *end, unsigned lost_tlps)
{
    (void)ctx;
    (void)end;
    (void)lost_tlps;
}

static const struct pcie_end_ops device_ops = {.receive = device_receive, .ready = device_ready, .down = device_down};

void bench_release(struct bench *bench)
{
    bench->holds = false;
    for (unsigned i = 0; i < bench->held_count; i++) {
        pcie_end_release(bench->device, bench->held[i]);
        pcie_tlp_unref(bench->held[i]);
    }
    bench->held_count = 0;
}

// --- the host ------------------------------------------------------------------------------------------------------

static void link_init(struct bench *bench)
{
    const struct pcie_end_config end = {
        .headers = {4, 4, PCIE_CREDITS_INFINITE},
        .data = {64, 64, PCIE_CREDITS_INFINITE},
        .tx_queue_tlps = 16,
    };
    const struct pcie_link_config link = {
        .generation = 2, .lanes = 8, .mps_bytes = 256, .flight_ps = 1 * NS, .ends = {end, end}};
    ASSERT_EQ(pcie_link_create(bench->sim, bench->pool, "slot", &link, &bench->link), SIM_OK);
    bench->device = pcie_link_end(bench->link, 1);
    pcie_end_attach(bench->device, &device_ops, bench);
    unsigned port = pcie_rc_add_port(bench->rc, pcie_link_end(bench->link, 0));
    ASSERT_EQ(pcie_rc_add_window(bench->rc, port, DEVICE_BASE, DEVICE_BYTES), SIM_OK);
}

void bench_init(struct bench *bench)
{
    *bench = (struct bench){0};
    const struct sim_config config = {.seed = 1, .silence_limit_ps = 1000000 * NS};
    const struct pcie_rc_config rc = {.memory_read_ps = 100 * NS,
                                      .memory_reads_max = 8,
                                      .rcb_bytes = 64,
                                      .mps_bytes = 256,
                                      .peer_reads_max = 4,
                                      .qpi_peer_lines_max = 1};
    ASSERT_EQ(sim_create(&config, &bench->sim), SIM_OK);
    ASSERT_EQ(pcie_pool_create(&bench->pool), SIM_OK);
    ASSERT_EQ(host_memory_create(bench->sim, "memory", 64ull << 20, &bench->memory), SIM_OK);
    ASSERT_EQ(pcie_rc_create(bench->sim, bench->pool, "rc", &rc, &host_memory_pcie_ops, bench->memory, &bench->rc),
              SIM_OK);
    ASSERT_EQ(host_core_create(bench->sim, "core", &bench_costs, bench->rc, bench->memory, &bench->core), SIM_OK);
    link_init(bench);
}

void bench_fini(struct bench *bench)
{
    host_core_destroy(bench->core);
    pcie_rc_destroy(bench->rc);
    pcie_link_destroy(bench->link);
    host_memory_destroy(bench->memory);
    EXPECT_EQ(pcie_pool_destroy(bench->pool), 0);
    sim_destroy(bench->sim);
}

enum sim_run_outcome bench_run(struct bench *bench, void (*program)(void *bench))
{
    EXPECT_EQ(sim_thread_spawn(bench->sim, "program", program, bench), SIM_OK);
    return sim_run(bench->sim);
}

// --- writes of a device --------------------------------------------------------------------------------------------

struct later {
    sim_event_t event;
    struct bench *bench;
    uint64_t address, value;
};

static void later_run(void *ctx)
{
    struct later *later = ctx;
    host_memory_pcie_ops.write(later->bench->memory, later->address, &later->value, sizeof later->value);
    free(later);
}

void bench_write_later(struct bench *bench, uint64_t delay_ps, uint64_t address, uint64_t value)
{
    struct later *later = malloc(sizeof *later);
    if (later == NULL) {
        FAIL("no memory");
        return;
    }
    later->bench = bench;
    later->address = address;
    later->value = value;
    sim_event_init(&later->event, later_run, later);
    sim_event_schedule(bench->sim, &later->event, delay_ps);
}

uint64_t bench_counter(const struct bench *bench, const char *component, const char *name)
{
    bool found;
    uint64_t value = sim_counter_value(bench->sim, component, name, &found);
    EXPECT_TRUE(found);
    return value;
}
