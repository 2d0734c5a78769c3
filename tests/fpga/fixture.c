#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "sim/kernel/counter.h"
#include "tests/shim/test.h"

// --- host memory -----------------------------------------------------------------------------------------------------

static bool memory_claims(void *ctx, uint64_t address, uint64_t bytes)
{
    (void)ctx;
    uint64_t offset = address - FIXTURE_HOST_BASE;
    return address >= FIXTURE_HOST_BASE && offset < FIXTURE_HOST_BYTES && bytes <= FIXTURE_HOST_BYTES - offset;
}

static bool memory_read(void *ctx, uint64_t address, void *data, uint32_t bytes)
{
    struct fixture *fixture = ctx;
    memcpy(data, fixture->host_memory + (address - FIXTURE_HOST_BASE), bytes);
    return true;
}

static bool memory_write(void *ctx, uint64_t address, const void *data, uint32_t bytes)
{
    struct fixture *fixture = ctx;
    memcpy(fixture->host_memory + (address - FIXTURE_HOST_BASE), data, bytes);
    return true;
}

static const struct pcie_memory_ops MEMORY_OPS = {.claims = memory_claims, .read = memory_read, .write = memory_write};

// --- creation and destruction ----------------------------------------------------------------------------------------

struct fixture_config fixture_config(void)
{
    const struct pcie_end_config end = {
        .headers = {64, 64, PCIE_CREDITS_INFINITE},
        .data = {1024, 1024, PCIE_CREDITS_INFINITE},
        .tx_queue_tlps = 32,
    };
    const struct pcie_link_config link = {.generation = 3, .mps_bytes = 256, .flight_ps = 2000, .ends = {end, end}};
    struct fixture_config config = {
        .fpga = {.clock_ps = 4000,
                 .memory_bytes = FIXTURE_FPGA_BYTES,
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

static void ports_add(struct fixture *fixture)
{
    unsigned port = pcie_rc_add_port(fixture->rc, pcie_link_end(fixture->fpga_link, 0));
    EXPECT_EQ(pcie_rc_add_window(fixture->rc, port, FIXTURE_MEMORY_BASE, FIXTURE_FPGA_BYTES), SIM_OK);
    EXPECT_EQ(pcie_rc_add_window(fixture->rc, port, FIXTURE_CONTROL_BASE, 2 * FPGA_CONTROL_BYTES), SIM_OK);
    port = pcie_rc_add_port(fixture->rc, pcie_link_end(fixture->peer_link, 0));
    EXPECT_EQ(pcie_rc_add_window(fixture->rc, port, FIXTURE_PEER_BASE, PEER_BYTES), SIM_OK);
}

struct fixture *fixture_create(const struct fixture_config *config)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    const struct sim_config sim_config = {.seed = 1};
    if (sim_create(&sim_config, &fixture->sim) != SIM_OK || pcie_pool_create(&fixture->pool) != SIM_OK ||
        pcie_rc_create(fixture->sim, fixture->pool, "rc", &config->rc, &MEMORY_OPS, fixture, &fixture->rc) != SIM_OK ||
        pcie_link_create(fixture->sim, fixture->pool, "slot0", &config->fpga_link, &fixture->fpga_link) != SIM_OK ||
        pcie_link_create(fixture->sim, fixture->pool, "slot1", &config->peer_link, &fixture->peer_link) != SIM_OK ||
        fpga_create(fixture->sim, fixture->pool, "fpga", &config->fpga, &fixture->fpga) != SIM_OK) {
        sim_panic("fixture", "the machine of a test cannot be created");
    }
    fixture->host_memory = calloc(1, FIXTURE_HOST_BYTES);
    fixture->fpga_memory = fpga_memory(fixture->fpga);
    ports_add(fixture);
    fpga_connect(fixture->fpga, pcie_link_end(fixture->fpga_link, 1), FIXTURE_MEMORY_BASE, FIXTURE_CONTROL_BASE);
    peer_init(&fixture->peer, fixture->sim, pcie_link_end(fixture->peer_link, 1), FIXTURE_PEER_BASE);
    return fixture;
}

struct fixture *fixture_create_default(void)
{
    const struct fixture_config config = fixture_config();
    return fixture_create(&config);
}

void fixture_destroy(struct fixture *fixture)
{
    pcie_rc_destroy(fixture->rc);
    fpga_destroy(fixture->fpga);
    peer_fini(&fixture->peer);
    pcie_link_destroy(fixture->fpga_link);
    pcie_link_destroy(fixture->peer_link);
    EXPECT_EQ(pcie_pool_destroy(fixture->pool), 0);
    sim_destroy(fixture->sim);
    free(fixture->host_memory);
    free(fixture);
}

void fixture_run(struct fixture *fixture)
{
    EXPECT_EQ(sim_run(fixture->sim), SIM_RUN_DONE);
}

static void stop_run(void *ctx)
{
    sim_stop(ctx);
}

void fixture_run_for(struct fixture *fixture, uint64_t duration_ps)
{
    sim_event_t stop;
    sim_event_init(&stop, stop_run, fixture->sim);
    sim_event_schedule(fixture->sim, &stop, duration_ps);
    EXPECT_EQ(sim_run(fixture->sim), SIM_RUN_STOPPED);
}

// --- the processor ---------------------------------------------------------------------------------------------------

static void stores_pump(void *ctx)
{
    struct fixture *fixture = ctx;
    while (fixture->stores_done < fixture->store_count) {
        const struct fixture_store *store = &fixture->stores[fixture->stores_done];
        if (!pcie_rc_cpu_write(fixture->rc, FIXTURE_CONTROL_BASE + store->offset, &store->value, 4, stores_pump,
                               fixture)) {
            return;
        }
        fixture->stores_done++;
    }
    fixture->stores_done = 0;
    fixture->store_count = 0;
}

void fixture_store_control(struct fixture *fixture, uint32_t offset, uint32_t value)
{
    if (fixture->store_count == FIXTURE_STORES_MAX) {
        sim_panic("fixture", "too many stores");
    }
    fixture->stores[fixture->store_count++] = (struct fixture_store){offset, value};
    if (fixture->store_count == 1) {
        stores_pump(fixture);
    }
}

void fixture_descriptor(struct fixture *fixture, enum fpga_direction direction, uint64_t source, uint64_t destination,
                        uint32_t bytes, uint8_t id)
{
    uint32_t control = direction * FPGA_CONTROLLER_STRIDE + FPGA_DESCRIPTOR;
    fixture_store_control(fixture, control, (uint32_t)source);
    fixture_store_control(fixture, control, (uint32_t)(source >> 32));
    fixture_store_control(fixture, control, (uint32_t)destination);
    fixture_store_control(fixture, control, (uint32_t)(destination >> 32));
    fixture_store_control(fixture, control, (uint32_t)id << FPGA_ID_SHIFT | (bytes >> 2 & FPGA_LENGTH_DWORDS));
}

static void load_done(void *ctx, enum pcie_cpl_status status, const uint8_t *data, uint32_t bytes)
{
    struct fixture *fixture = ctx;
    fixture->loaded = true;
    fixture->load_status = status;
    memset(fixture->load_data, 0xff, sizeof fixture->load_data);
    if (data != NULL) {
        memcpy(fixture->load_data, data, bytes);
    }
    sim_stop(fixture->sim);
}

enum pcie_cpl_status fixture_load(struct fixture *fixture, uint64_t address, uint32_t bytes, void *data)
{
    fixture->loaded = false;
    pcie_rc_cpu_read(fixture->rc, address, bytes, load_done, fixture);
    EXPECT_EQ(sim_run(fixture->sim), SIM_RUN_STOPPED);
    EXPECT_TRUE(fixture->loaded);
    memcpy(data, fixture->load_data, bytes);
    return fixture->load_status;
}

uint32_t fixture_control(struct fixture *fixture, enum fpga_direction direction, uint32_t offset)
{
    uint32_t value = 0;
    EXPECT_EQ(fixture_load(fixture, FIXTURE_CONTROL_BASE + direction * FPGA_CONTROLLER_STRIDE + offset, 4, &value),
              PCIE_CPL_SC);
    return value;
}

uint32_t fixture_status(struct fixture *fixture, enum fpga_direction direction, uint8_t id)
{
    return fixture_control(fixture, direction, FPGA_STATUS + id * 4u);
}

uint32_t fixture_cycles(struct fixture *fixture, enum fpga_direction direction, uint8_t id)
{
    return fixture_control(fixture, direction, FPGA_COUNT + id * 4u);
}

uint64_t fixture_counter(const struct fixture *fixture, const char *name)
{
    bool found = false;
    uint64_t value = sim_counter_value(fixture->sim, "fpga", name, &found);
    EXPECT_TRUE(found);
    return value;
}

void fixture_fill(uint8_t *memory, uint32_t bytes, uint32_t salt)
{
    struct sim_random random;
    sim_random_init(&random, salt, "fill");
    for (uint32_t i = 0; i < bytes; i++) {
        memory[i] = (uint8_t)sim_random_u64(&random);
    }
}
