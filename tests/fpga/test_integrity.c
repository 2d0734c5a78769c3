// Random transfers, both directions at once, to host memory and the partner: every byte of all memories is compared
// with the effect of the same transfers on plain arrays.
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

enum { ROUNDS = 12, TRANSFERS = 100, SLOT_BYTES = 16384 };

struct model {
    struct fixture *fixture;
    struct sim_random random;
    uint8_t *host, *peer, *fpga;
};

static uint8_t *copy_of(const uint8_t *memory, size_t bytes)
{
    uint8_t *copy = malloc(bytes);
    memcpy(copy, memory, bytes);
    return copy;
}

// Transfer i has a range of its own on either side, so that the order does not matter.
static void transfer_random(struct model *model, unsigned i)
{
    uint32_t bytes = 4 * (1 + (uint32_t)sim_random_below(&model->random, SLOT_BYTES / 8));
    uint32_t space = SLOT_BYTES - bytes;
    uint32_t local = i * SLOT_BYTES + 4 * (uint32_t)sim_random_below(&model->random, space / 4 + 1);
    uint32_t remote = i * SLOT_BYTES + 4 * (uint32_t)sim_random_below(&model->random, space / 4 + 1);
    bool to_peer = sim_random_below(&model->random, 2) == 1;
    uint64_t address = (to_peer ? FIXTURE_PEER_BASE : FIXTURE_HOST_BASE) + remote;
    uint8_t *other = (to_peer ? model->peer : model->host) + remote;
    if (sim_random_below(&model->random, 2) == 1) {
        fixture_descriptor(model->fixture, FPGA_READ, address, local, bytes, (uint8_t)i);
        memcpy(model->fpga + local, other, bytes);
    } else {
        fixture_descriptor(model->fixture, FPGA_WRITE, local, address, bytes, (uint8_t)i);
        memcpy(other, model->fpga + local, bytes);
    }
}

static void traffic_run(const struct fixture_config *config)
{
    struct model model = {.fixture = fixture_create(config)};
    struct fixture *fixture = model.fixture;
    fixture->peer.jitter_ps = 2 * SIM_PS_PER_US;
    sim_random_init(&model.random, 7, "transfers");
    fixture_fill(fixture->host_memory, FIXTURE_HOST_BYTES, 1);
    fixture_fill(fixture->peer.memory, PEER_BYTES, 2);
    fixture_fill(fixture->fpga_memory, FIXTURE_FPGA_BYTES, 3);
    model.host = copy_of(fixture->host_memory, FIXTURE_HOST_BYTES);
    model.peer = copy_of(fixture->peer.memory, PEER_BYTES);
    model.fpga = copy_of(fixture->fpga_memory, FIXTURE_FPGA_BYTES);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < TRANSFERS; i++) {
            transfer_random(&model, i);
        }
        fixture_run(fixture);
    }
    EXPECT_EQ(fixture_counter(fixture, "reads_done") + fixture_counter(fixture, "writes_done"), ROUNDS * TRANSFERS);
    EXPECT_MEMEQ(fixture->host_memory, model.host, FIXTURE_HOST_BYTES);
    EXPECT_MEMEQ(fixture->peer.memory, model.peer, PEER_BYTES);
    EXPECT_MEMEQ(fixture->fpga_memory, model.fpga, FIXTURE_FPGA_BYTES);
    EXPECT_LE(fixture_counter(fixture, "read_tags_peak"), config->fpga.read_tags);
    fixture_destroy(fixture);
    free(model.host);
    free(model.peer);
    free(model.fpga);
}

TEST(FpgaIntegrity, EveryByteArrivesWhereItBelongsAndNoOtherChanges)
{
    const struct fixture_config config = fixture_config();
    traffic_run(&config);
}

TEST(FpgaIntegrity, HoldsOnLinksThatCorruptTlps)
{
    struct fixture_config config = fixture_config();
    config.fpga_link.corrupt_every_tlps = 11;
    config.peer_link.corrupt_every_tlps = 13;
    traffic_run(&config);
}

TEST(FpgaIntegrity, HoldsWithTheSmallestBuffers)
{
    struct fixture_config config = fixture_config();
    for (unsigned side = 0; side < 2; side++) {
        config.fpga_link.ends[side].tx_queue_tlps = 1;
        for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
            config.fpga_link.ends[side].headers[class] = 1;
            config.fpga_link.ends[side].data[class] = 16;
        }
    }
    config.rc.peer_reads_max = 1;
    config.fpga.completion_timeout_ps = SIM_PS_PER_MS;
    traffic_run(&config);
}

TEST(FpgaIntegrity, HoldsWithPacketsOf128AndTwoTags)
{
    struct fixture_config config = fixture_config();
    config.fpga.mps_bytes = 128;
    config.fpga.mrrs_bytes = 128;
    config.fpga.read_tags = 2;
    traffic_run(&config);
}

TEST(FpgaIntegrity, PartnerReadsAndWritesTheOnChipMemoryWhileDmaRuns)
{
    struct fixture *fixture = fixture_create_default();
    uint8_t data[256];
    fixture_fill(fixture->peer.memory, 1 << 18, 1);
    fixture_fill(data, sizeof data, 2);
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 1 << 19, 1 << 18, 1);
    fixture_descriptor(fixture, FPGA_WRITE, 1 << 20, FIXTURE_PEER_BASE + (1 << 20), 1 << 18, 2);
    for (unsigned i = 0; i < 64; i++) {
        fixture_run_for(fixture, 500000);
        pcie_end_t *end = pcie_link_end(fixture->peer_link, 1);
        EXPECT_TRUE(
            pcie_end_offer(end, pcie_tlp_write(fixture->pool, 0x200, FIXTURE_MEMORY_BASE + i * 256, 256, data)));
    }
    fixture_run(fixture);
    for (unsigned i = 0; i < 64; i++) {
        EXPECT_MEMEQ(fixture->fpga_memory + i * 256, data, 256);
    }
    EXPECT_MEMEQ(fixture->fpga_memory + (1 << 19), fixture->peer.memory, 1 << 18);
    fixture_destroy(fixture);
}
