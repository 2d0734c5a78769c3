// Random traffic of all kinds at once, on links with and without faults. Every byte of every memory is compared with
// the effect of the same accesses on plain arrays, so that a wrong byte next to a changed range would be found.
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "sim/kernel/random.h"
#include "tests/shim/test.h"

enum { ROUNDS = 60, ACCESSES = 48, SLOT_BYTES = 512 };

struct model {
    struct host *host;
    struct sim_random random;
    uint8_t memory[HOST_BYTES];
    uint8_t devices[HOST_DEVICES][HOST_BYTES];
};

// A range within a slot that no other access of the round touches, so that the order does not matter.
static uint32_t range_pick(struct model *model, unsigned slot, uint32_t most, uint32_t *bytes_out)
{
    uint32_t bytes = 1 + (uint32_t)sim_random_below(&model->random, most);
    uint32_t offset = (uint32_t)sim_random_below(&model->random, SLOT_BYTES - bytes + 1);
    *bytes_out = bytes;
    return slot * SLOT_BYTES + offset;
}

static void data_fill(struct model *model, uint8_t *data, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)sim_random_u64(&model->random);
    }
}

static void write_random(struct model *model, unsigned slot)
{
    uint8_t data[256];
    uint32_t bytes = 0, offset = range_pick(model, slot, 248, &bytes);
    unsigned from = (unsigned)sim_random_below(&model->random, HOST_DEVICES);
    unsigned to = (unsigned)sim_random_below(&model->random, HOST_DEVICES + 1);
    data_fill(model, data, bytes);
    if (to == HOST_DEVICES || to == from) {
        device_write(&model->host->devices[from], HOST_MEMORY_BASE + offset, bytes, data);
        memcpy(model->memory + offset, data, bytes);
    } else {
        device_write(&model->host->devices[from], HOST_WINDOW(to) + offset, bytes, data);
        memcpy(model->devices[to] + offset, data, bytes);
    }
}

static void read_random(struct model *model, unsigned slot, uint8_t tag)
{
    uint32_t bytes = 0, offset = range_pick(model, slot, SLOT_BYTES, &bytes);
    unsigned from = tag % HOST_DEVICES;
    unsigned to = (unsigned)sim_random_below(&model->random, HOST_DEVICES + 1);
    uint64_t base = to == HOST_DEVICES || to == from ? HOST_MEMORY_BASE : HOST_WINDOW(to);
    device_read(&model->host->devices[from], tag, base + offset, bytes);
}

static void read_check(const struct model *model, uint8_t tag)
{
    const struct device_read *read = &model->host->devices[tag % HOST_DEVICES].reads[tag];
    const uint8_t *expected = model->memory;
    uint64_t base = HOST_MEMORY_BASE;
    if (read->address >= HOST_WINDOW(0)) {
        unsigned to = (unsigned)((read->address - HOST_WINDOW(0)) / HOST_BYTES);
        expected = model->devices[to];
        base = HOST_WINDOW(to);
    }
    EXPECT_EQ(read->received_bytes, read->bytes);
    EXPECT_MEMEQ(read->data, expected + (read->address - base), read->bytes);
}

static void memories_check(const struct model *model)
{
    EXPECT_MEMEQ(model->host->memory, model->memory, HOST_BYTES);
    for (unsigned i = 0; i < HOST_DEVICES; i++) {
        EXPECT_MEMEQ(model->host->devices[i].memory, model->devices[i], HOST_BYTES);
    }
}

static void round_run(struct model *model)
{
    for (unsigned i = 0; i < ACCESSES; i++) {
        if (i % 2 == 0) {
            write_random(model, i);
        } else {
            read_random(model, i, (uint8_t)i);
        }
    }
    EXPECT_EQ(sim_run(model->host->sim), SIM_RUN_DONE);
    for (unsigned i = 1; i < ACCESSES; i += 2) {
        read_check(model, (uint8_t)i);
    }
}

static void traffic_run(const struct host_config *config, uint64_t seed)
{
    struct model *model = calloc(1, sizeof *model);
    model->host = host_create(config);
    if (config->rc.qpi_peer_lines_max > 0) {
        EXPECT_EQ(pcie_rc_set_port_socket(model->host->rc, 1, 1), SIM_OK);
        pcie_rc_set_far_memory(model->host->rc, HOST_MEMORY_BASE + HOST_BYTES / 2);
    }
    sim_random_init(&model->random, seed, "traffic");
    for (unsigned round = 0; round < ROUNDS; round++) {
        round_run(model);
    }
    memories_check(model);
    host_destroy(model->host);
    free(model);
}

TEST(Integrity, EveryByteArrivesWhereItBelongsAndNoOtherChanges)
{
    const struct host_config config = host_config();
    traffic_run(&config, 1);
}

TEST(Integrity, HoldsOnLinksThatCorruptTlps)
{
    struct host_config config = host_config();
    config.link.corrupt_every_tlps = 11;
    config.link.flight_ps = 30000;
    traffic_run(&config, 2);
}

static struct host_config smallest_config(void)
{
    struct host_config config = host_config();
    config.rc.memory_reads_max = 1;
    config.rc.peer_reads_max = 1;
    for (unsigned side = 0; side < 2; side++) {
        config.link.ends[side].tx_queue_tlps = 1;
        for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
            config.link.ends[side].headers[class] = 1;
            config.link.ends[side].data[class] = 16;
        }
    }
    return config;
}

TEST(Integrity, HoldsWithTheSmallestBuffers)
{
    const struct host_config config = smallest_config();
    traffic_run(&config, 3);
}

TEST(Integrity, HoldsWithPeerReadsInPieces)
{
    struct host_config config = host_config();
    config.rc.peer_read_bytes = 64;
    traffic_run(&config, 5);
}

TEST(Integrity, HoldsAcrossQpi)
{
    struct host_config config = host_config();
    config.rc.qpi_ps = 60000;
    config.rc.qpi_peer_write_ps = 300000;
    config.rc.qpi_peer_read_ps = 80000;
    config.rc.qpi_peer_lines_max = 2;
    traffic_run(&config, 6);
}

TEST(Integrity, HoldsAcrossQpiWithTheSmallestBuffers)
{
    struct host_config config = smallest_config();
    config.rc.qpi_ps = 60000;
    config.rc.peer_read_bytes = 128;
    config.rc.qpi_peer_lines_max = 1;
    traffic_run(&config, 7);
}

TEST(Integrity, HoldsAtGen3WithPayloadsOf128)
{
    struct host_config config = host_config();
    config.link.generation = 3;
    config.rc.mps_bytes = 128;
    config.rc.rcb_bytes = 128;
    traffic_run(&config, 4);
}
