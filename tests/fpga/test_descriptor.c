// From five words to a descriptor, and the queue.
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

TEST(FpgaDescriptor, FiveWordsMakeOne)
{
    struct fixture *fixture = fixture_create_default();
    fixture_fill(fixture->host_memory, 4096, 1);
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_HOST_BASE, 0x40, 64, 0xa5);
    fixture_run(fixture);
    EXPECT_MEMEQ(fixture->fpga_memory + 0x40, fixture->host_memory, 64);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 0xa5), FIXTURE_DONE(0xa5));
    EXPECT_EQ(fixture_status(fixture, FPGA_WRITE, 0xa5), 0);
    fixture_destroy(fixture);
}

TEST(FpgaDescriptor, FourWordsAreNone)
{
    struct fixture *fixture = fixture_create_default();
    for (unsigned i = 0; i < 4; i++) {
        fixture_store_control(fixture, FPGA_DESCRIPTOR, i);
    }
    fixture_run(fixture);
    EXPECT_EQ(fixture_control(fixture, FPGA_READ, FPGA_WORDS), 4);
    EXPECT_EQ(fixture_control(fixture, FPGA_READ, FPGA_LEVEL), 0);
    EXPECT_EQ(fixture_counter(fixture, "reads_done"), 0);
    fixture_destroy(fixture);
}

TEST(FpgaDescriptor, HalfADescriptorCanBeForgotten)
{
    struct fixture *fixture = fixture_create_default();
    fixture_fill(fixture->host_memory, 64, 1);
    fixture_store_control(fixture, FPGA_DESCRIPTOR, 0x12345678);
    fixture_store_control(fixture, FPGA_WORDS, 0);
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_HOST_BASE, 0, 64, 1);
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 1), FIXTURE_DONE(1));
    EXPECT_MEMEQ(fixture->fpga_memory, fixture->host_memory, 64);
    fixture_destroy(fixture);
}

TEST(FpgaDescriptor, ControllersKeepTheirWordsApart)
{
    struct fixture *fixture = fixture_create_default();
    fixture_fill(fixture->fpga_memory, 64, 1);
    fixture_store_control(fixture, FPGA_DESCRIPTOR, 0x12345678);
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_HOST_BASE + 4096, 64, 2);
    fixture_run(fixture);
    EXPECT_EQ(fixture_control(fixture, FPGA_READ, FPGA_WORDS), 1);
    EXPECT_MEMEQ(fixture->host_memory + 4096, fixture->fpga_memory, 64);
    fixture_destroy(fixture);
}

TEST(FpgaDescriptor, ReservedBitsAreIgnored)
{
    struct fixture *fixture = fixture_create_default();
    fixture_fill(fixture->host_memory, 64, 1);
    fixture_store_control(fixture, FPGA_DESCRIPTOR, (uint32_t)FIXTURE_HOST_BASE);
    fixture_store_control(fixture, FPGA_DESCRIPTOR, (uint32_t)(FIXTURE_HOST_BASE >> 32));
    fixture_store_control(fixture, FPGA_DESCRIPTOR, 0);
    fixture_store_control(fixture, FPGA_DESCRIPTOR, 0);
    fixture_store_control(fixture, FPGA_DESCRIPTOR, 0xfc000000 | 3u << FPGA_ID_SHIFT | 16);
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 3), FIXTURE_DONE(3));
    EXPECT_MEMEQ(fixture->fpga_memory, fixture->host_memory, 64);
    fixture_destroy(fixture);
}

// The partner is slow, so that all of them are in the controller at once.
static void descriptors_write(struct fixture *fixture, unsigned descriptors)
{
    fixture->peer.latency_ps = 20 * SIM_PS_PER_US;
    fixture_fill(fixture->peer.memory, 256 * 64, 1);
    for (unsigned i = 0; i < descriptors; i++) {
        fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE + i * 64, i * 64, 64, (uint8_t)i);
    }
}

static struct fixture *queue_fill(unsigned descriptors)
{
    struct fixture *fixture = fixture_create_default();
    descriptors_write(fixture, descriptors);
    return fixture;
}

TEST(FpgaDescriptor, QueueTakes128)
{
    struct fixture *fixture = queue_fill(128);
    fixture_run_for(fixture, 15 * SIM_PS_PER_US);
    EXPECT_EQ(fixture_control(fixture, FPGA_READ, FPGA_LEVEL), 128);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 127), FPGA_STATUS_BUSY | 127);
    fixture_run(fixture);
    EXPECT_EQ(fixture_counter(fixture, "reads_done"), 128);
    EXPECT_EQ(fixture_counter(fixture, "queue_peak"), 128);
    EXPECT_EQ(fixture_counter(fixture, "refused_descriptors"), 0);
    EXPECT_MEMEQ(fixture->fpga_memory, fixture->peer.memory, 128 * 64);
    EXPECT_EQ(fixture_control(fixture, FPGA_READ, FPGA_LEVEL), 0);
    fixture_destroy(fixture);
}

TEST(FpgaDescriptor, The129thIsRefusedWithItsIdAndMovesNothing)
{
    struct fixture *fixture = queue_fill(129);
    static const uint8_t nothing[64] = {0};
    fixture_run(fixture);
    EXPECT_EQ(fixture_counter(fixture, "reads_done"), 128);
    EXPECT_EQ(fixture_counter(fixture, "refused_descriptors"), 1);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 128), FIXTURE_FAILED(128, FPGA_ERROR_QUEUE_FULL));
    EXPECT_MEMEQ(fixture->fpga_memory, fixture->peer.memory, 128 * 64);
    EXPECT_MEMEQ(fixture->fpga_memory + 128 * 64, nothing, 64);
    fixture_destroy(fixture);
}

TEST(FpgaDescriptor, OneThatIsRefusedHasTakenNoCycles)
{
    struct fixture *fixture = fixture_create_default();
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 64, 128);
    fixture_run(fixture);
    EXPECT_GT(fixture_cycles(fixture, FPGA_READ, 128), 0); // those of the transfer that had the id before
    descriptors_write(fixture, 129);
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 128), FIXTURE_FAILED(128, FPGA_ERROR_QUEUE_FULL));
    EXPECT_EQ(fixture_cycles(fixture, FPGA_READ, 128), 0);
    fixture_destroy(fixture);
}

TEST(FpgaDescriptor, AfterARefusalThereIsRoomAgain)
{
    struct fixture *fixture = queue_fill(129);
    fixture_run(fixture);
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE + 128 * 64, 128 * 64, 64, 128);
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 128), FIXTURE_DONE(128));
    EXPECT_MEMEQ(fixture->fpga_memory, fixture->peer.memory, 129 * 64);
    fixture_destroy(fixture);
}

TEST(FpgaDescriptor, EachOf128HasAStatusOfItsOwn)
{
    struct fixture *fixture = queue_fill(128);
    fixture_run(fixture);
    for (unsigned id = 0; id < 256; id++) {
        EXPECT_EQ(fixture_status(fixture, FPGA_READ, (uint8_t)id), id < 128 ? FIXTURE_DONE(id) : 0);
    }
    fixture_destroy(fixture);
}

TEST(FpgaDescriptor, IdUsedAgainIsBusyUntilItsSecondEnd)
{
    struct fixture *fixture = fixture_create_default();
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 4, 9);
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 9), FIXTURE_DONE(9));
    fixture->peer.latency_ps = 10 * SIM_PS_PER_US;
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 4, 9);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 9), FPGA_STATUS_BUSY | 9);
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 9), FIXTURE_DONE(9));
    fixture_destroy(fixture);
}
