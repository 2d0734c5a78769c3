// Random transfers, both directions at once, to host memory and the partner: every byte of all memories is compared
// with what the same transfers do to plain arrays.
#include <stdlib.h>
#include <string.h>

#include "rig.h"
#include "tests/shim/test.h"

enum { ROUNDS = 12, TRANSFERS = 100, SLOT_BYTES = 16384 };

struct model {
    struct rig *rig;
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
    uint64_t address = (to_peer ? RIG_PEER_BASE : RIG_HOST_BASE) + remote;
    uint8_t *other = (to_peer ? model->peer : model->host) + remote;
    if (sim_random_below(&model->random, 2) == 1) {
        rig_descriptor(model->rig, FPGA_READ, address, local, bytes, (uint8_t)i);
        memcpy(model->fpga + local, other, bytes);
    } else {
        rig_descriptor(model->rig, FPGA_WRITE, local, address, bytes, (uint8_t)i);
        memcpy(other, model->fpga + local, bytes);
    }
}

static void traffic_run(const struct rig_config *config)
{
    struct model model = {.rig = rig_create(config)};
    struct rig *rig = model.rig;
    rig->peer.jitter_ps = 2 * SIM_PS_PER_US;
    sim_random_init(&model.random, 7, "transfers");
    rig_fill(rig->host_memory, RIG_HOST_BYTES, 1);
    rig_fill(rig->peer.memory, PEER_BYTES, 2);
    rig_fill(rig->fpga_memory, RIG_FPGA_BYTES, 3);
    model.host = copy_of(rig->host_memory, RIG_HOST_BYTES);
    model.peer = copy_of(rig->peer.memory, PEER_BYTES);
    model.fpga = copy_of(rig->fpga_memory, RIG_FPGA_BYTES);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < TRANSFERS; i++) {
            transfer_random(&model, i);
        }
        rig_run(rig);
    }
    EXPECT_EQ(rig_counter(rig, "reads_done") + rig_counter(rig, "writes_done"), ROUNDS * TRANSFERS);
    EXPECT_MEMEQ(rig->host_memory, model.host, RIG_HOST_BYTES);
    EXPECT_MEMEQ(rig->peer.memory, model.peer, PEER_BYTES);
    EXPECT_MEMEQ(rig->fpga_memory, model.fpga, RIG_FPGA_BYTES);
    EXPECT_TRUE(rig_counter(rig, "read_tags_peak") <= config->fpga.read_tags);
    rig_destroy(rig);
    free(model.host);
    free(model.peer);
    free(model.fpga);
}

TEST(FpgaIntegrity, EveryByteArrivesWhereItBelongsAndNoOtherChanges)
{
    const struct rig_config config = rig_config();
    traffic_run(&config);
}

TEST(FpgaIntegrity, HoldsOnLinksThatCorruptTlps)
{
    struct rig_config config = rig_config();
    config.fpga_link.corrupt_every_tlps = 11;
    config.peer_link.corrupt_every_tlps = 13;
    traffic_run(&config);
}

TEST(FpgaIntegrity, HoldsWithTheSmallestBuffers)
{
    struct rig_config config = rig_config();
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
    struct rig_config config = rig_config();
    config.fpga.mps_bytes = 128;
    config.fpga.mrrs_bytes = 128;
    config.fpga.read_tags = 2;
    traffic_run(&config);
}

TEST(FpgaIntegrity, PartnerReadsAndWritesTheOnChipMemoryWhileDmaRuns)
{
    struct rig *rig = rig_create_default();
    uint8_t data[256];
    rig_fill(rig->peer.memory, 1 << 18, 1);
    rig_fill(data, sizeof data, 2);
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 1 << 19, 1 << 18, 1);
    rig_descriptor(rig, FPGA_WRITE, 1 << 20, RIG_PEER_BASE + (1 << 20), 1 << 18, 2);
    for (unsigned i = 0; i < 64; i++) {
        rig_run_for(rig, 500000);
        pcie_end_t *end = pcie_link_end(rig->peer_link, 1);
        EXPECT_TRUE(pcie_end_offer(end, pcie_tlp_write(rig->pool, 0x200, RIG_MEMORY_BASE + i * 256, 256, data)));
    }
    rig_run(rig);
    for (unsigned i = 0; i < 64; i++) {
        EXPECT_MEMEQ(rig->fpga_memory + i * 256, data, 256);
    }
    EXPECT_MEMEQ(rig->fpga_memory + (1 << 19), rig->peer.memory, 1 << 18);
    rig_destroy(rig);
}
