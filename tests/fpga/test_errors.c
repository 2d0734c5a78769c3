// What bad descriptors, partners and links get: a status with the id, a count, and an end.
#include <string.h>

#include "rig.h"
#include "tests/shim/test.h"

static void bad_expect(enum fpga_direction direction, uint64_t source, uint64_t destination, uint32_t bytes,
                       enum fpga_error error)
{
    struct rig *rig = rig_create_default();
    rig_descriptor(rig, direction, source, destination, bytes, 77);
    rig_run(rig);
    EXPECT_EQ(rig_status(rig, direction, 77), RIG_FAILED(77, error));
    EXPECT_EQ(rig_counter(rig, "bad_descriptors"), 1);
    EXPECT_EQ(rig->peer.read_count + rig->peer.write_count, 0);
    EXPECT_EQ(rig_control(rig, direction, FPGA_LEVEL), 0);
    rig_destroy(rig);
}

TEST(FpgaErrors, LengthZeroIsRefused)
{
    bad_expect(FPGA_READ, RIG_PEER_BASE, 0, 0, FPGA_ERROR_LENGTH);
    bad_expect(FPGA_WRITE, 0, RIG_PEER_BASE, 0, FPGA_ERROR_LENGTH);
}

TEST(FpgaErrors, OneMebibyteIsALengthOfZero)
{
    bad_expect(FPGA_READ, RIG_PEER_BASE, 0, 1 << 20, FPGA_ERROR_LENGTH);
}

TEST(FpgaErrors, AddressesThatAreNoWordsAreRefused)
{
    bad_expect(FPGA_READ, RIG_PEER_BASE + 2, 0, 8, FPGA_ERROR_MISALIGNED);
    bad_expect(FPGA_READ, RIG_PEER_BASE, 1, 8, FPGA_ERROR_MISALIGNED);
    bad_expect(FPGA_WRITE, 3, RIG_PEER_BASE, 8, FPGA_ERROR_MISALIGNED);
}

TEST(FpgaErrors, OnChipAddressesBeyondTheMemoryAreRefused)
{
    bad_expect(FPGA_READ, RIG_PEER_BASE, RIG_FPGA_BYTES - 4, 8, FPGA_ERROR_RANGE);
    bad_expect(FPGA_WRITE, RIG_FPGA_BYTES, RIG_PEER_BASE, 4, FPGA_ERROR_RANGE);
    bad_expect(FPGA_WRITE, UINT64_MAX - 3, RIG_PEER_BASE, 8, FPGA_ERROR_RANGE);
}

TEST(FpgaErrors, ReadsAcrossTheEndOfTheAddressSpaceAreRefused)
{
    bad_expect(FPGA_READ, UINT64_MAX - 3, 0, 8, FPGA_ERROR_RANGE);
}

TEST(FpgaErrors, DescriptorsBehindABadOneAreDone)
{
    struct rig *rig = rig_create_default();
    rig_fill(rig->peer.memory, 4096, 1);
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 2, 64, 1);
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0, 4096, 2);
    rig_run(rig);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 2), RIG_DONE(2));
    EXPECT_MEMEQ(rig->fpga_memory, rig->peer.memory, 4096);
    rig_destroy(rig);
}

TEST(FpgaErrors, UnsupportedRequestEndsTheDescriptor)
{
    struct rig *rig = rig_create_default();
    rig_descriptor(rig, FPGA_READ, RIG_NOWHERE, 0, 65536, 5);
    rig_run(rig);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 5), RIG_FAILED(5, FPGA_ERROR_UR));
    EXPECT_TRUE(rig_counter(rig, "failed_reads") > 0);
    // It stops asking: of 128 requests only those under way when the first answer came.
    EXPECT_TRUE(rig_counter(rig, "read_requests") <= 32);
    rig_destroy(rig);
}

TEST(FpgaErrors, CompleterAbortInTheMiddleEndsTheDescriptor)
{
    struct rig *rig = rig_create_default();
    rig->peer.status = PCIE_CPL_CA;
    rig->peer.fail_from = 3;
    rig_fill(rig->peer.memory, 4096, 1);
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0, 4096, 6);
    rig_run(rig);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 6), RIG_FAILED(6, FPGA_ERROR_CA));
    EXPECT_EQ(rig_counter(rig, "failed_reads"), 5);
    EXPECT_MEMEQ(rig->fpga_memory, rig->peer.memory, 3 * 512);
    rig_destroy(rig);
}

TEST(FpgaErrors, SilenceEndsInATimeOut)
{
    struct rig *rig = rig_create_default();
    rig->peer.silent_from = 2;
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0, 65536, 7);
    rig_run(rig);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 7), RIG_FAILED(7, FPGA_ERROR_TIMEOUT));
    EXPECT_EQ(rig_counter(rig, "read_timeouts"), 16);
    EXPECT_BETWEEN(rig_cycles(rig, FPGA_READ, 7) * 4ull, 50000, 54000);
    rig_destroy(rig);
}

TEST(FpgaErrors, AnswerAfterTheTimeOutBelongsToNobody)
{
    // It comes while another read waits in the same slot for as many bytes of an address that ends alike.
    struct rig *rig = rig_create_default();
    rig->peer.latency_ps = 60 * SIM_PS_PER_US;
    rig_fill(rig->peer.memory, 8192, 1);
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0, 64, 8);
    rig_run_for(rig, 55 * SIM_PS_PER_US);
    rig->peer.latency_ps = 20 * SIM_PS_PER_US;
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE + 4096, 0, 64, 9);
    rig_run(rig);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 8), RIG_FAILED(8, FPGA_ERROR_TIMEOUT));
    EXPECT_EQ(rig_status(rig, FPGA_READ, 9), RIG_DONE(9));
    EXPECT_EQ(rig_counter(rig, "unexpected_completions"), 1);
    EXPECT_MEMEQ(rig->fpga_memory, rig->peer.memory + 4096, 64);
    EXPECT_TRUE(rig_cycles(rig, FPGA_READ, 9) * 4 > 20000);
    rig_destroy(rig);
}

TEST(FpgaErrors, CompletionNobodyAskedForIsCountedAndDropped)
{
    struct rig *rig = rig_create_default();
    pcie_tlp_t *request = pcie_tlp_read(rig->pool, 0x100, 0x10, RIG_HOST_BASE, 64);
    uint8_t data[64] = {1};
    EXPECT_TRUE(pcie_end_offer(pcie_link_end(rig->fpga_link, 0), pcie_tlp_completion(request, 0, 0, 64, data)));
    pcie_tlp_unref(request);
    rig_run(rig);
    EXPECT_EQ(rig_counter(rig, "unexpected_completions"), 1);
    rig_destroy(rig);
}

TEST(FpgaErrors, CompletionOfAnotherLengthDoesNotContinueARead)
{
    struct rig *rig = rig_create_default();
    const uint8_t data[128] = {1, 2, 3};
    rig->peer.silent_from = 0;
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0, 64, 1);
    rig_run_for(rig, 10 * SIM_PS_PER_US);
    pcie_tlp_t *request = pcie_tlp_read(rig->pool, 0x100, 0x10, RIG_PEER_BASE, 128); // 0x10: the first tag
    EXPECT_TRUE(pcie_end_offer(pcie_link_end(rig->fpga_link, 0), pcie_tlp_completion(request, 0, 0, 128, data)));
    pcie_tlp_unref(request);
    rig_run(rig);
    EXPECT_EQ(rig_counter(rig, "unexpected_completions"), 1);
    EXPECT_EQ(rig_counter(rig, "read_bytes"), 0);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 1), RIG_FAILED(1, FPGA_ERROR_TIMEOUT));
    rig_destroy(rig);
}

// Any words at all: most are refused or answered Unsupported Request; some addresses are made to hit.
static uint32_t word_random(struct sim_random *random)
{
    static const uint32_t ADDRESSES[] = {(uint32_t)(RIG_PEER_BASE >> 32),
                                         (uint32_t)(RIG_HOST_BASE >> 32),
                                         0,
                                         UINT32_MAX,
                                         UINT32_MAX - 3,
                                         RIG_FPGA_BYTES - 4,
                                         4096 - 4};
    uint64_t draw = sim_random_u64(random);
    return draw % 4 == 0 ? (uint32_t)(draw >> 32) : ADDRESSES[(draw >> 8) % (sizeof ADDRESSES / sizeof *ADDRESSES)];
}

TEST(FpgaErrors, NoSequenceOfWordsHangsIt)
{
    struct rig *rig = rig_create_default();
    struct sim_random random;
    sim_random_init(&random, 1, "words");
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = 0; i < 500; i++) {
            uint32_t direction = sim_random_u64(&random) % FPGA_DIRECTIONS;
            rig_store_control(rig, direction * FPGA_CONTROLLER_STRIDE + FPGA_DESCRIPTOR, word_random(&random));
        }
        rig_run(rig);
    }
    EXPECT_EQ(rig_control(rig, FPGA_READ, FPGA_LEVEL), 0);
    EXPECT_EQ(rig_control(rig, FPGA_WRITE, FPGA_LEVEL), 0);
    EXPECT_TRUE(rig_counter(rig, "bad_descriptors") > 100);
    EXPECT_TRUE(rig_counter(rig, "failed_reads") > 100);
    uint64_t left = rig_control(rig, FPGA_READ, FPGA_WORDS) + rig_control(rig, FPGA_WRITE, FPGA_WORDS);
    EXPECT_EQ(rig_counter(rig, "reads_done") + rig_counter(rig, "writes_done"),
              (100 * 500 - left) / 5 - rig_counter(rig, "refused_descriptors"));
    rig_destroy(rig);
}

TEST(FpgaErrors, LinkThatGoesDownLeavesNoDescriptorWaiting)
{
    struct rig *rig = rig_create_default();
    rig->peer.latency_ps = 10 * SIM_PS_PER_US;
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0, 65536, 1);
    rig_descriptor(rig, FPGA_WRITE, 0, RIG_PEER_BASE, 65536, 2);
    rig_run_for(rig, 4 * SIM_PS_PER_US);
    pcie_link_set_down(rig->fpga_link);
    rig_run(rig);
    EXPECT_EQ(rig_counter(rig, "reads_done"), 1);
    EXPECT_EQ(rig_counter(rig, "writes_done"), 1);
    EXPECT_EQ(rig_counter(rig, "read_timeouts"), 16);
    rig_destroy(rig);
}
