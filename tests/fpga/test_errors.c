// Bad descriptors, partners and links cause a status with the id, a count, and an end.
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

static void bad_expect(enum fpga_direction direction, uint64_t source, uint64_t destination, uint32_t bytes,
                       enum fpga_error error)
{
    struct fixture *fixture = fixture_create_default();
    fixture_descriptor(fixture, direction, source, destination, bytes, 77);
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, direction, 77), FIXTURE_FAILED(77, error));
    EXPECT_EQ(fixture_counter(fixture, "bad_descriptors"), 1);
    EXPECT_EQ(fixture->peer.read_count + fixture->peer.write_count, 0);
    EXPECT_EQ(fixture_control(fixture, direction, FPGA_LEVEL), 0);
    fixture_destroy(fixture);
}

TEST(FpgaErrors, LengthZeroIsRefused)
{
    bad_expect(FPGA_READ, FIXTURE_PEER_BASE, 0, 0, FPGA_ERROR_LENGTH);
    bad_expect(FPGA_WRITE, 0, FIXTURE_PEER_BASE, 0, FPGA_ERROR_LENGTH);
}

TEST(FpgaErrors, OneMebibyteIsALengthOfZero)
{
    bad_expect(FPGA_READ, FIXTURE_PEER_BASE, 0, 1 << 20, FPGA_ERROR_LENGTH);
}

TEST(FpgaErrors, AddressesThatAreNoWordsAreRefused)
{
    bad_expect(FPGA_READ, FIXTURE_PEER_BASE + 2, 0, 8, FPGA_ERROR_MISALIGNED);
    bad_expect(FPGA_READ, FIXTURE_PEER_BASE, 1, 8, FPGA_ERROR_MISALIGNED);
    bad_expect(FPGA_WRITE, 3, FIXTURE_PEER_BASE, 8, FPGA_ERROR_MISALIGNED);
}

TEST(FpgaErrors, OnChipAddressesBeyondTheMemoryAreRefused)
{
    bad_expect(FPGA_READ, FIXTURE_PEER_BASE, FIXTURE_FPGA_BYTES - 4, 8, FPGA_ERROR_RANGE);
    bad_expect(FPGA_WRITE, FIXTURE_FPGA_BYTES, FIXTURE_PEER_BASE, 4, FPGA_ERROR_RANGE);
    bad_expect(FPGA_WRITE, UINT64_MAX - 3, FIXTURE_PEER_BASE, 8, FPGA_ERROR_RANGE);
}

TEST(FpgaErrors, ReadsAcrossTheEndOfTheAddressSpaceAreRefused)
{
    bad_expect(FPGA_READ, UINT64_MAX - 3, 0, 8, FPGA_ERROR_RANGE);
}

TEST(FpgaErrors, TransfersUpToTheLastByteOfTheAddressSpaceAreSent)
{
    struct fixture *fixture = fixture_create_default();
    fixture_descriptor(fixture, FPGA_READ, UINT64_MAX - 7, 0, 8, 1);
    fixture_descriptor(fixture, FPGA_WRITE, 0, UINT64_MAX - 7, 8, 2);
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 1), FIXTURE_FAILED(1, FPGA_ERROR_UR)); // nobody is there
    EXPECT_EQ(fixture_status(fixture, FPGA_WRITE, 2), FIXTURE_DONE(2));
    EXPECT_EQ(fixture_counter(fixture, "bad_descriptors"), 0);
    fixture_destroy(fixture);
}

TEST(FpgaErrors, DescriptorsBehindABadOneAreDone)
{
    struct fixture *fixture = fixture_create_default();
    fixture_fill(fixture->peer.memory, 4096, 1);
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 2, 64, 1);
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 4096, 2);
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 2), FIXTURE_DONE(2));
    EXPECT_MEMEQ(fixture->fpga_memory, fixture->peer.memory, 4096);
    fixture_destroy(fixture);
}

TEST(FpgaErrors, UnsupportedRequestEndsTheDescriptor)
{
    struct fixture *fixture = fixture_create_default();
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_NOWHERE, 0, 65536, 5);
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 5), FIXTURE_FAILED(5, FPGA_ERROR_UR));
    EXPECT_GT(fixture_counter(fixture, "failed_reads"), 0);
    // After the error it sends no more requests: of 128 only those before the first completion were sent.
    EXPECT_LE(fixture_counter(fixture, "read_requests"), 32);
    fixture_destroy(fixture);
}

TEST(FpgaErrors, CompleterAbortInTheMiddleEndsTheDescriptor)
{
    struct fixture *fixture = fixture_create_default();
    fixture->peer.status = PCIE_CPL_CA;
    fixture->peer.fail_from = 3;
    fixture_fill(fixture->peer.memory, 4096, 1);
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 4096, 6);
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 6), FIXTURE_FAILED(6, FPGA_ERROR_CA));
    EXPECT_EQ(fixture_counter(fixture, "failed_reads"), 5);
    EXPECT_MEMEQ(fixture->fpga_memory, fixture->peer.memory, 3 * 512);
    fixture_destroy(fixture);
}

TEST(FpgaErrors, SilenceEndsInATimeOut)
{
    struct fixture *fixture = fixture_create_default();
    fixture->peer.silent_from = 2;
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 65536, 7);
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 7), FIXTURE_FAILED(7, FPGA_ERROR_TIMEOUT));
    EXPECT_EQ(fixture_counter(fixture, "read_timeouts"), 16);
    EXPECT_BETWEEN(fixture_cycles(fixture, FPGA_READ, 7) * 4ull, 50000, 54000);
    fixture_destroy(fixture);
}

TEST(FpgaErrors, StatusHasTheErrorThatCameFirst)
{
    // The first request goes to a partner that is silent, the second one to nobody, which is told at once.
    struct fixture *fixture = fixture_create_default();
    fixture->peer.silent_from = 0;
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE + PEER_BYTES - 512, 0, 1024, 7);
    fixture_run(fixture);
    EXPECT_EQ(fixture_counter(fixture, "failed_reads"), 1);
    EXPECT_EQ(fixture_counter(fixture, "read_timeouts"), 1);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 7), FIXTURE_FAILED(7, FPGA_ERROR_UR));
    fixture_destroy(fixture);
}

TEST(FpgaErrors, ReadThatTheHardIpHasNotTakenDoesNotTimeOut)
{
    // A silent partner, and a root complex that passes one read on: the reads behind it fill the buffers up to the
    // FPGA, and the last one finds no room in the hard IP.
    struct fixture_config config = fixture_config();
    config.fpga_link.ends[0].headers[PCIE_NONPOSTED] = 1;
    config.fpga_link.ends[1].tx_queue_tlps = 1;
    config.rc.peer_reads_max = 1;
    struct fixture *fixture = fixture_create(&config);
    fixture->peer.silent_from = 0;
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 8192, 7);
    fixture_run(fixture);
    EXPECT_GT(sim_now_ps(fixture->sim), 50 * SIM_PS_PER_US);
    EXPECT_GT(fixture_counter(fixture, "transmit_stalls"), 0);
    EXPECT_EQ(fixture_counter(fixture, "read_timeouts"), fixture_counter(fixture, "read_requests") - 1);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 7), FPGA_STATUS_BUSY | 7);
    fixture_destroy(fixture);
}

TEST(FpgaErrors, AnswerAfterTheTimeOutBelongsToNobody)
{
    // The late completion arrives while another read with as many bytes and the same low address bits uses the same
    // slot.
    struct fixture *fixture = fixture_create_default();
    fixture->peer.latency_ps = 60 * SIM_PS_PER_US;
    fixture_fill(fixture->peer.memory, 8192, 1);
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 64, 8);
    fixture_run_for(fixture, 55 * SIM_PS_PER_US);
    fixture->peer.latency_ps = 20 * SIM_PS_PER_US;
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE + 4096, 0, 64, 9);
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 8), FIXTURE_FAILED(8, FPGA_ERROR_TIMEOUT));
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 9), FIXTURE_DONE(9));
    EXPECT_EQ(fixture_counter(fixture, "unexpected_completions"), 1);
    EXPECT_MEMEQ(fixture->fpga_memory, fixture->peer.memory + 4096, 64);
    EXPECT_GT(fixture_cycles(fixture, FPGA_READ, 9) * 4, 20000);
    fixture_destroy(fixture);
}

TEST(FpgaErrors, CompletionNobodyAskedForIsCountedAndDropped)
{
    struct fixture *fixture = fixture_create_default();
    pcie_tlp_t *request = pcie_tlp_read(fixture->pool, 0x100, 0x10, FIXTURE_HOST_BASE, 64);
    uint8_t data[64] = {1};
    EXPECT_TRUE(pcie_end_offer(pcie_link_end(fixture->fpga_link, 0), pcie_tlp_completion(request, 0, 0, 64, data)));
    pcie_tlp_unref(request);
    fixture_run(fixture);
    EXPECT_EQ(fixture_counter(fixture, "unexpected_completions"), 1);
    fixture_destroy(fixture);
}

TEST(FpgaErrors, CompletionOfAnotherLengthDoesNotContinueARead)
{
    struct fixture *fixture = fixture_create_default();
    const uint8_t data[128] = {1, 2, 3};
    fixture->peer.silent_from = 0;
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 64, 1);
    fixture_run_for(fixture, 10 * SIM_PS_PER_US);
    pcie_tlp_t *request = pcie_tlp_read(fixture->pool, 0x100, 0x10, FIXTURE_PEER_BASE, 128); // 0x10: the first tag
    EXPECT_TRUE(pcie_end_offer(pcie_link_end(fixture->fpga_link, 0), pcie_tlp_completion(request, 0, 0, 128, data)));
    pcie_tlp_unref(request);
    fixture_run(fixture);
    EXPECT_EQ(fixture_counter(fixture, "unexpected_completions"), 1);
    EXPECT_EQ(fixture_counter(fixture, "read_bytes"), 0);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 1), FIXTURE_FAILED(1, FPGA_ERROR_TIMEOUT));
    fixture_destroy(fixture);
}

// Random words: most are refused or answered Unsupported Request; some addresses are chosen to hit.
static uint32_t word_random(struct sim_random *random)
{
    static const uint32_t ADDRESSES[] = {(uint32_t)(FIXTURE_PEER_BASE >> 32),
                                         (uint32_t)(FIXTURE_HOST_BASE >> 32),
                                         0,
                                         UINT32_MAX,
                                         UINT32_MAX - 3,
                                         FIXTURE_FPGA_BYTES - 4,
                                         4096 - 4};
    uint64_t draw = sim_random_u64(random);
    return draw % 4 == 0 ? (uint32_t)(draw >> 32) : ADDRESSES[(draw >> 8) % (sizeof ADDRESSES / sizeof *ADDRESSES)];
}

TEST(FpgaErrors, NoSequenceOfWordsHangsIt)
{
    struct fixture *fixture = fixture_create_default();
    struct sim_random random;
    sim_random_init(&random, 1, "words");
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = 0; i < 500; i++) {
            uint32_t direction = sim_random_u64(&random) % FPGA_DIRECTIONS;
            fixture_store_control(fixture, direction * FPGA_CONTROLLER_STRIDE + FPGA_DESCRIPTOR, word_random(&random));
        }
        fixture_run(fixture);
    }
    EXPECT_EQ(fixture_control(fixture, FPGA_READ, FPGA_LEVEL), 0);
    EXPECT_EQ(fixture_control(fixture, FPGA_WRITE, FPGA_LEVEL), 0);
    EXPECT_GT(fixture_counter(fixture, "bad_descriptors"), 100);
    EXPECT_GT(fixture_counter(fixture, "failed_reads"), 100);
    uint64_t left = fixture_control(fixture, FPGA_READ, FPGA_WORDS) + fixture_control(fixture, FPGA_WRITE, FPGA_WORDS);
    EXPECT_EQ(fixture_counter(fixture, "reads_done") + fixture_counter(fixture, "writes_done"),
              (100 * 500 - left) / 5 - fixture_counter(fixture, "refused_descriptors"));
    fixture_destroy(fixture);
}

TEST(FpgaErrors, LinkThatGoesDownLeavesNoDescriptorWaiting)
{
    struct fixture *fixture = fixture_create_default();
    fixture->peer.latency_ps = 10 * SIM_PS_PER_US;
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 65536, 1);
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE, 65536, 2);
    fixture_run_for(fixture, 4 * SIM_PS_PER_US);
    pcie_link_set_down(fixture->fpga_link);
    fixture_run(fixture);
    EXPECT_EQ(fixture_counter(fixture, "reads_done"), 1);
    EXPECT_EQ(fixture_counter(fixture, "writes_done"), 1);
    EXPECT_EQ(fixture_counter(fixture, "read_timeouts"), 16);
    fixture_destroy(fixture);
}

TEST(FpgaErrors, EveryOutageAddsTheTlpsThatItCost)
{
    struct fixture_config config = fixture_config();
    config.fpga_link.ends[1].tx_ps = 20 * SIM_PS_PER_US; // a hard IP that keeps packets for long
    struct fixture *fixture = fixture_create(&config);
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE, 600, 1); // three packets
    fixture_run_for(fixture, 10 * SIM_PS_PER_US);
    pcie_link_set_down(fixture->fpga_link);
    EXPECT_EQ(fixture_counter(fixture, "lost_tlps"), 3);
    pcie_link_set_up(fixture->fpga_link);
    fixture_run(fixture);
    ASSERT_TRUE(pcie_link_is_up(fixture->fpga_link));
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE, 4, 2); // one
    fixture_run_for(fixture, 10 * SIM_PS_PER_US);
    pcie_link_set_down(fixture->fpga_link);
    EXPECT_EQ(fixture_counter(fixture, "lost_tlps"), 4);
    fixture_run(fixture);
    fixture_destroy(fixture);
}
