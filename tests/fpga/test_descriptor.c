// From five words to a descriptor, and the queue.
#include <string.h>

#include "rig.h"
#include "tests/shim/test.h"

TEST(FpgaDescriptor, FiveWordsMakeOne)
{
    struct rig *rig = rig_create_default();
    rig_fill(rig->host_memory, 4096, 1);
    rig_descriptor(rig, FPGA_READ, RIG_HOST_BASE, 0x40, 64, 0xa5);
    rig_run(rig);
    EXPECT_MEMEQ(rig->fpga_memory + 0x40, rig->host_memory, 64);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 0xa5), RIG_DONE(0xa5));
    EXPECT_EQ(rig_status(rig, FPGA_WRITE, 0xa5), 0);
    rig_destroy(rig);
}

TEST(FpgaDescriptor, FourWordsAreNone)
{
    struct rig *rig = rig_create_default();
    for (unsigned i = 0; i < 4; i++) {
        rig_store_control(rig, FPGA_DESCRIPTOR, i);
    }
    rig_run(rig);
    EXPECT_EQ(rig_control(rig, FPGA_READ, FPGA_WORDS), 4);
    EXPECT_EQ(rig_control(rig, FPGA_READ, FPGA_LEVEL), 0);
    EXPECT_EQ(rig_counter(rig, "reads_done"), 0);
    rig_destroy(rig);
}

TEST(FpgaDescriptor, HalfADescriptorCanBeForgotten)
{
    struct rig *rig = rig_create_default();
    rig_fill(rig->host_memory, 64, 1);
    rig_store_control(rig, FPGA_DESCRIPTOR, 0x12345678);
    rig_store_control(rig, FPGA_WORDS, 0);
    rig_descriptor(rig, FPGA_READ, RIG_HOST_BASE, 0, 64, 1);
    rig_run(rig);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 1), RIG_DONE(1));
    EXPECT_MEMEQ(rig->fpga_memory, rig->host_memory, 64);
    rig_destroy(rig);
}

TEST(FpgaDescriptor, ControllersKeepTheirWordsApart)
{
    struct rig *rig = rig_create_default();
    rig_fill(rig->fpga_memory, 64, 1);
    rig_store_control(rig, FPGA_DESCRIPTOR, 0x12345678);
    rig_descriptor(rig, FPGA_WRITE, 0, RIG_HOST_BASE + 4096, 64, 2);
    rig_run(rig);
    EXPECT_EQ(rig_control(rig, FPGA_READ, FPGA_WORDS), 1);
    EXPECT_MEMEQ(rig->host_memory + 4096, rig->fpga_memory, 64);
    rig_destroy(rig);
}

TEST(FpgaDescriptor, ReservedBitsAreIgnored)
{
    struct rig *rig = rig_create_default();
    rig_fill(rig->host_memory, 64, 1);
    rig_store_control(rig, FPGA_DESCRIPTOR, (uint32_t)RIG_HOST_BASE);
    rig_store_control(rig, FPGA_DESCRIPTOR, (uint32_t)(RIG_HOST_BASE >> 32));
    rig_store_control(rig, FPGA_DESCRIPTOR, 0);
    rig_store_control(rig, FPGA_DESCRIPTOR, 0);
    rig_store_control(rig, FPGA_DESCRIPTOR, 0xfc000000 | 3u << FPGA_ID_SHIFT | 16);
    rig_run(rig);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 3), RIG_DONE(3));
    EXPECT_MEMEQ(rig->fpga_memory, rig->host_memory, 64);
    rig_destroy(rig);
}

// The partner is slow, so that all of them are in the controller at once.
static struct rig *queue_fill(unsigned descriptors)
{
    struct rig *rig = rig_create_default();
    rig->peer.latency_ps = 20 * SIM_PS_PER_US;
    rig_fill(rig->peer.memory, 256 * 64, 1);
    for (unsigned i = 0; i < descriptors; i++) {
        rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE + i * 64, i * 64, 64, (uint8_t)i);
    }
    return rig;
}

TEST(FpgaDescriptor, QueueTakes128)
{
    struct rig *rig = queue_fill(128);
    rig_run_for(rig, 15 * SIM_PS_PER_US);
    EXPECT_EQ(rig_control(rig, FPGA_READ, FPGA_LEVEL), 128);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 127), FPGA_STATUS_BUSY | 127);
    rig_run(rig);
    EXPECT_EQ(rig_counter(rig, "reads_done"), 128);
    EXPECT_EQ(rig_counter(rig, "queue_peak"), 128);
    EXPECT_EQ(rig_counter(rig, "refused_descriptors"), 0);
    EXPECT_MEMEQ(rig->fpga_memory, rig->peer.memory, 128 * 64);
    EXPECT_EQ(rig_control(rig, FPGA_READ, FPGA_LEVEL), 0);
    rig_destroy(rig);
}

TEST(FpgaDescriptor, The129thIsRefusedWithItsIdAndMovesNothing)
{
    struct rig *rig = queue_fill(129);
    static const uint8_t nothing[64] = {0};
    rig_run(rig);
    EXPECT_EQ(rig_counter(rig, "reads_done"), 128);
    EXPECT_EQ(rig_counter(rig, "refused_descriptors"), 1);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 128), RIG_FAILED(128, FPGA_ERROR_QUEUE_FULL));
    EXPECT_MEMEQ(rig->fpga_memory, rig->peer.memory, 128 * 64);
    EXPECT_MEMEQ(rig->fpga_memory + 128 * 64, nothing, 64);
    rig_destroy(rig);
}

TEST(FpgaDescriptor, AfterARefusalThereIsRoomAgain)
{
    struct rig *rig = queue_fill(129);
    rig_run(rig);
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE + 128 * 64, 128 * 64, 64, 128);
    rig_run(rig);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 128), RIG_DONE(128));
    EXPECT_MEMEQ(rig->fpga_memory, rig->peer.memory, 129 * 64);
    rig_destroy(rig);
}

TEST(FpgaDescriptor, EachOf128HasAStatusOfItsOwn)
{
    struct rig *rig = queue_fill(128);
    rig_run(rig);
    for (unsigned id = 0; id < 256; id++) {
        EXPECT_EQ(rig_status(rig, FPGA_READ, (uint8_t)id), id < 128 ? RIG_DONE(id) : 0);
    }
    rig_destroy(rig);
}

TEST(FpgaDescriptor, IdUsedAgainIsBusyUntilItsSecondEnd)
{
    struct rig *rig = rig_create_default();
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0, 4, 9);
    rig_run(rig);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 9), RIG_DONE(9));
    rig->peer.latency_ps = 10 * SIM_PS_PER_US;
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0, 4, 9);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 9), FPGA_STATUS_BUSY | 9);
    rig_run(rig);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 9), RIG_DONE(9));
    rig_destroy(rig);
}
