#include "rig.h"

#include <stdlib.h>
#include <string.h>

#include "sim/kernel/counter.h"
#include "tests/shim/test.h"

// --- host memory -----------------------------------------------------------------------------------------------------

static bool memory_claims(void *ctx, uint64_t address, uint64_t bytes)
{
    (void)ctx;
    uint64_t offset = address - RIG_HOST_BASE;
    return address >= RIG_HOST_BASE && offset < RIG_HOST_BYTES && bytes <= RIG_HOST_BYTES - offset;
}

static bool memory_read(void *ctx, uint64_t address, void *data, uint32_t bytes)
{
    struct rig *rig = ctx;
    memcpy(data, rig->host_memory + (address - RIG_HOST_BASE), bytes);
    return true;
}

static bool memory_write(void *ctx, uint64_t address, const void *data, uint32_t bytes)
{
    struct rig *rig = ctx;
    memcpy(rig->host_memory + (address - RIG_HOST_BASE), data, bytes);
    return true;
}

static const struct pcie_memory_ops MEMORY_OPS = {.claims = memory_claims, .read = memory_read, .write = memory_write};

// --- life ------------------------------------------------------------------------------------------------------------

struct rig_config rig_config(void)
{
    const struct pcie_end_config end = {
        .headers = {64, 64, PCIE_CREDITS_INFINITE},
        .data = {1024, 1024, PCIE_CREDITS_INFINITE},
        .tx_queue_tlps = 32,
    };
    const struct pcie_link_config link = {.generation = 3, .mps_bytes = 256, .flight_ps = 2000, .ends = {end, end}};
    struct rig_config config = {
        .fpga = {.clock_ps = 4000,
                 .memory_bytes = RIG_FPGA_BYTES,
                 .requester = 0x100,
                 .mps_bytes = 256,
                 .mrrs_bytes = 512,
                 .read_tags = 16,
                 .access_cycles = 10,
                 .answer_cycles = 10,
                 .read_start_cycles = 20,
                 .read_finish_cycles = 5,
                 .write_start_cycles = 30,
                 .write_finish_cycles = 7,
                 .completion_timeout_ps = 50 * SIM_PS_PER_US},
        .rc = {.memory_read_ps = 200000,
               .memory_write_ps = 100000,
               .memory_reads_max = 32,
               .rcb_bytes = 64,
               .mps_bytes = 256,
               .peer_ps = 100000,
               .peer_reads_max = 64},
        .fpga_link = link,
        .peer_link = link,
    };
    config.fpga_link.lanes = 8;
    config.peer_link.lanes = 16;
    return config;
}

static void ports_add(struct rig *rig)
{
    unsigned port = pcie_rc_add_port(rig->rc, pcie_link_end(rig->fpga_link, 0));
    EXPECT_EQ(pcie_rc_add_window(rig->rc, port, RIG_MEMORY_BASE, RIG_FPGA_BYTES), SIM_OK);
    EXPECT_EQ(pcie_rc_add_window(rig->rc, port, RIG_CONTROL_BASE, 2 * FPGA_CONTROL_BYTES), SIM_OK);
    port = pcie_rc_add_port(rig->rc, pcie_link_end(rig->peer_link, 0));
    EXPECT_EQ(pcie_rc_add_window(rig->rc, port, RIG_PEER_BASE, PEER_BYTES), SIM_OK);
}

struct rig *rig_create(const struct rig_config *config)
{
    struct rig *rig = calloc(1, sizeof *rig);
    const struct sim_config sim_config = {.seed = 1};
    if (sim_create(&sim_config, &rig->sim) != SIM_OK || pcie_pool_create(&rig->pool) != SIM_OK ||
        pcie_rc_create(rig->sim, rig->pool, "rc", &config->rc, &MEMORY_OPS, rig, &rig->rc) != SIM_OK ||
        pcie_link_create(rig->sim, rig->pool, "slot0", &config->fpga_link, &rig->fpga_link) != SIM_OK ||
        pcie_link_create(rig->sim, rig->pool, "slot1", &config->peer_link, &rig->peer_link) != SIM_OK ||
        fpga_create(rig->sim, rig->pool, "fpga", &config->fpga, &rig->fpga) != SIM_OK) {
        sim_panic("rig", "the machine of a test cannot be created");
    }
    rig->host_memory = calloc(1, RIG_HOST_BYTES);
    rig->fpga_memory = fpga_memory(rig->fpga);
    ports_add(rig);
    fpga_connect(rig->fpga, pcie_link_end(rig->fpga_link, 1), RIG_MEMORY_BASE, RIG_CONTROL_BASE);
    peer_init(&rig->peer, rig->sim, pcie_link_end(rig->peer_link, 1), RIG_PEER_BASE);
    return rig;
}

struct rig *rig_create_default(void)
{
    const struct rig_config config = rig_config();
    return rig_create(&config);
}

void rig_destroy(struct rig *rig)
{
    pcie_rc_destroy(rig->rc);
    fpga_destroy(rig->fpga);
    peer_fini(&rig->peer);
    pcie_link_destroy(rig->fpga_link);
    pcie_link_destroy(rig->peer_link);
    EXPECT_EQ(pcie_pool_destroy(rig->pool), 0);
    sim_destroy(rig->sim);
    free(rig->host_memory);
    free(rig);
}

void rig_run(struct rig *rig)
{
    EXPECT_EQ(sim_run(rig->sim), SIM_RUN_DONE);
}

static void stop_run(void *ctx)
{
    sim_stop(ctx);
}

void rig_run_for(struct rig *rig, uint64_t duration_ps)
{
    sim_event_t stop;
    sim_event_init(&stop, stop_run, rig->sim);
    sim_event_schedule(rig->sim, &stop, duration_ps);
    EXPECT_EQ(sim_run(rig->sim), SIM_RUN_STOPPED);
}

// --- the processor ---------------------------------------------------------------------------------------------------

static void stores_pump(void *ctx)
{
    struct rig *rig = ctx;
    while (rig->stores_done < rig->store_count) {
        const struct rig_store *store = &rig->stores[rig->stores_done];
        if (!pcie_rc_cpu_write(rig->rc, RIG_CONTROL_BASE + store->offset, &store->value, 4, stores_pump, rig)) {
            return;
        }
        rig->stores_done++;
    }
    rig->stores_done = 0;
    rig->store_count = 0;
}

void rig_store_control(struct rig *rig, uint32_t offset, uint32_t value)
{
    if (rig->store_count == RIG_STORES_MAX) {
        sim_panic("rig", "too many stores");
    }
    rig->stores[rig->store_count++] = (struct rig_store){offset, value};
    if (rig->store_count == 1) {
        stores_pump(rig);
    }
}

void rig_descriptor(struct rig *rig, enum fpga_direction direction, uint64_t source, uint64_t destination,
                    uint32_t bytes, uint8_t id)
{
    uint32_t control = direction * FPGA_CONTROLLER_STRIDE + FPGA_DESCRIPTOR;
    rig_store_control(rig, control, (uint32_t)source);
    rig_store_control(rig, control, (uint32_t)(source >> 32));
    rig_store_control(rig, control, (uint32_t)destination);
    rig_store_control(rig, control, (uint32_t)(destination >> 32));
    rig_store_control(rig, control, (uint32_t)id << FPGA_ID_SHIFT | (bytes >> 2 & FPGA_LENGTH_DWORDS));
}

static void load_done(void *ctx, enum pcie_cpl_status status, const uint8_t *data, uint32_t bytes)
{
    struct rig *rig = ctx;
    rig->loaded = true;
    rig->load_status = status;
    memset(rig->load_data, 0xff, sizeof rig->load_data);
    if (data != NULL) {
        memcpy(rig->load_data, data, bytes);
    }
    sim_stop(rig->sim);
}

enum pcie_cpl_status rig_load(struct rig *rig, uint64_t address, uint32_t bytes, void *data)
{
    rig->loaded = false;
    pcie_rc_cpu_read(rig->rc, address, bytes, load_done, rig);
    EXPECT_EQ(sim_run(rig->sim), SIM_RUN_STOPPED);
    EXPECT_TRUE(rig->loaded);
    memcpy(data, rig->load_data, bytes);
    return rig->load_status;
}

uint32_t rig_control(struct rig *rig, enum fpga_direction direction, uint32_t offset)
{
    uint32_t value = 0;
    EXPECT_EQ(rig_load(rig, RIG_CONTROL_BASE + direction * FPGA_CONTROLLER_STRIDE + offset, 4, &value), PCIE_CPL_SC);
    return value;
}

uint32_t rig_status(struct rig *rig, enum fpga_direction direction, uint8_t id)
{
    return rig_control(rig, direction, FPGA_STATUS + id * 4u);
}

uint32_t rig_cycles(struct rig *rig, enum fpga_direction direction, uint8_t id)
{
    return rig_control(rig, direction, FPGA_COUNT + id * 4u);
}

uint64_t rig_counter(const struct rig *rig, const char *name)
{
    bool found = false;
    uint64_t value = sim_counter_value(rig->sim, "fpga", name, &found);
    EXPECT_TRUE(found);
    return value;
}

void rig_fill(uint8_t *memory, uint32_t bytes, uint32_t salt)
{
    struct sim_random random;
    sim_random_init(&random, salt, "fill");
    for (uint32_t i = 0; i < bytes; i++) {
        memory[i] = (uint8_t)sim_random_u64(&random);
    }
}
