#include "site.h"

#include <stdio.h>

void site_init(struct site *site, unsigned nodes)
{
    *site = (struct site){.scenario = platform_fixture_line(nodes)};
}

void site_build(struct site *site)
{
    char error[256];
    if (plat_machine_create(site->scenario, NULL, error, sizeof error, &site->machine) != SIM_OK) {
        FAIL("%s", error);
    }
}

void site_fini(struct site *site)
{
    plat_machine_destroy(site->machine);
    platform_fixture_free(site->scenario);
}

void site_run(struct site *site, plat_program_fn program)
{
    ASSERT_NOT_NULL(site->machine);
    plat_machine_set_program(site->machine, 0, program, site);
    enum sim_run_outcome outcome = plat_machine_run(site->machine);
    if (outcome != SIM_RUN_DONE) {
        char waiters[1024];
        (void)sim_describe_waiters(plat_machine_sim(site->machine), waiters, sizeof waiters);
        FAIL("the run ended with %d: %s", (int)outcome, waiters);
    }
    if (plat_machine_failure(site->machine) != NULL) {
        FAIL("%s", plat_machine_failure(site->machine));
    }
    if (outcome == SIM_RUN_DONE) {
        EXPECT_EQ(plat_machine_live_packets(site->machine), 0);
    }
}

uint64_t site_counter(const struct site *site, const char *component, const char *name)
{
    bool found;
    uint64_t value = sim_counter_value(plat_machine_sim(site->machine), component, name, &found);
    if (!found) {
        FAIL("there is no counter %s of %s", name, component);
    }
    return value;
}

uint8_t *site_memory(const struct site *site, uint32_t node, uint64_t bus_address)
{
    return host_memory_at(plat_machine_memory(site->machine, node), bus_address);
}

struct backend_buffer site_pinned(peach2_handle_t *board, size_t bytes)
{
    const struct backend *backend = peach2_backend(board);
    struct backend_buffer buffer = {0};
    EXPECT_EQ(backend->ops->alloc_pinned(backend->ctx, bytes, &buffer), 0);
    return buffer;
}

unsigned site_dma(peach2_handle_t *board, unsigned channel, uint64_t source, uint64_t destination, uint32_t bytes)
{
    const struct peach2_transfer transfer = {.source = source, .destination = destination, .bytes = bytes};
    unsigned error = 99;
    EXPECT_EQ(peach2_dma_prepare(board, channel, &transfer, NULL), 0);
    EXPECT_EQ(peach2_dma_start(board, channel), 0);
    (void)peach2_dma_wait(board, channel, &error);
    return error;
}

static uint8_t byte_of(size_t index, uint32_t seed)
{
    return (uint8_t)(index * 11 + (index >> 8) * 73 + seed * 151 + 3);
}

void site_fill(uint8_t *data, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes; i++) {
        data[i] = byte_of(i, seed);
    }
}

bool site_is_filled(const uint8_t *data, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] != byte_of(i, seed)) {
            return false;
        }
    }
    return true;
}

bool site_is_value(const uint8_t *data, size_t bytes, uint8_t value)
{
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] != value) {
            return false;
        }
    }
    return true;
}
