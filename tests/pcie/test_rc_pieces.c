// Reads from port to port that the root complex passes on in pieces.
#include <string.h>

#include "host.h"
#include "tests/shim/test.h"

static struct host *host_with_pieces(uint32_t piece_bytes, uint32_t reads_max)
{
    struct host_config config = host_config();
    config.rc.peer_read_bytes = piece_bytes;
    config.rc.peer_reads_max = reads_max;
    struct host *host = host_create(&config);
    for (unsigned i = 0; i < HOST_BYTES; i++) {
        host->devices[1].memory[i] = (uint8_t)(i ^ i >> 8);
    }
    return host;
}

static void run_until(struct host *host, uint64_t delay_ps)
{
    sim_event_t stop;
    sim_event_init(&stop, (sim_event_fn)sim_stop, host->sim);
    sim_event_schedule(host->sim, &stop, delay_ps);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_STOPPED);
}

TEST(PeerPieces, EndAtMultiplesOfTheirSize)
{
    struct host *host = host_with_pieces(64, 8);
    device_read(&host->devices[0], 0, HOST_WINDOW(1) + 30, 200);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    const struct device_read *read = &host->devices[0].reads[0];
    const uint32_t expected[4] = {34, 64, 64, 38};
    ASSERT_EQ(read->completions, 4);
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_EQ(read->completion_bytes[i], expected[i]);
    }
    EXPECT_MEMEQ(read->data, host->devices[1].memory + 30, 200);
    host_destroy(host);
}

TEST(PeerPieces, CountOneByOneAgainstTheLimit)
{
    struct host *host = host_with_pieces(64, 4);
    host->devices[1].answer_bytes = 0;
    device_read(&host->devices[0], 0, HOST_WINDOW(1), 512);
    (void)sim_run(host->sim);
    EXPECT_EQ(sim_counter_value(host->sim, "link1.0", "tlps_sent", NULL), 4);
    host_destroy(host);
}

TEST(PeerPieces, BandwidthIsWhatIsOutstandingOverItsLatency)
{
    struct host *host = host_with_pieces(64, 4);
    for (uint8_t tag = 0; tag < 32; tag++) {
        device_read(&host->devices[0], tag, HOST_WINDOW(1) + tag * 512u, 512);
    }
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    // 50 ns to the port, 24 B and 84 B at 4 B/ns: 77 ns for each of the four at once, more if they queue.
    uint64_t ps = host->devices[0].reads[31].last_ps - host->devices[0].reads[0].first_ps;
    EXPECT_BETWEEN(31 * 512ull * SIM_PS_PER_US / ps, 4 * 64 * 1000 / 140, 4 * 64 * 1000 / 77);
    EXPECT_MEMEQ(host->devices[0].reads[31].data, host->devices[1].memory + 31 * 512, 512);
    host_destroy(host);
}

TEST(PeerPieces, LeaveByAddressWhenTheyAreAnsweredBackwards)
{
    struct host *host = host_with_pieces(64, 8);
    host->devices[1].holds_reads = true;
    host->devices[1].answer_bytes = 32;
    device_read(&host->devices[0], 3, HOST_WINDOW(1) + 4, 400);
    run_until(host, 10000000);
    device_answer_backwards(&host->devices[1]);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_EQ(host->devices[0].reads[3].received_bytes, 400);
    EXPECT_MEMEQ(host->devices[0].reads[3].data, host->devices[1].memory + 4, 400);
    host_destroy(host);
}

TEST(PeerPieces, EndInOneErrorWhenTheLinkGoesDownBetweenThem)
{
    struct host *host = host_with_pieces(64, 2);
    host->devices[1].holds_reads = true;
    device_read(&host->devices[0], 0, HOST_WINDOW(1), 512);
    device_read(&host->devices[0], 1, HOST_WINDOW(1), 64);
    run_until(host, 1000000);
    device_answer_backwards(&host->devices[1]); // two of eight
    run_until(host, 1000000);
    pcie_link_set_down(host->devices[1].link);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_EQ(host->devices[0].reads[0].received_bytes, 128);
    EXPECT_EQ(host->devices[0].reads[0].completions, 3);
    EXPECT_EQ(host->devices[0].reads[0].status, PCIE_CPL_UR);
    EXPECT_EQ(host->devices[0].reads[1].status, PCIE_CPL_UR);
    EXPECT_EQ(host_counter(host, "unsupported_reads"), 2);
    while (host->devices[1].asked != NULL) {
        pcie_tlp_t *tlp = host->devices[1].asked;
        host->devices[1].asked = tlp->next;
        pcie_tlp_unref(tlp);
    }
    host_destroy(host);
}

TEST(PeerPieces, AnErrorEndsTheReadAndTheNextOneGoesOn)
{
    struct host *host = host_with_pieces(64, 2);
    host->devices[1].holds_reads = true;
    device_read(&host->devices[0], 0, HOST_WINDOW(1), 512);
    run_until(host, 1000000);
    pcie_tlp_t *second = host->devices[1].asked, *first = second->next;
    device_offer(&host->devices[1], pcie_tlp_error(first, 0x101, PCIE_CPL_UR));
    device_offer(&host->devices[1], pcie_tlp_completion(second, 0x101, 0, 64, NULL));
    host->devices[1].asked = NULL;
    host->devices[1].holds_reads = false;
    pcie_tlp_unref(first);
    pcie_tlp_unref(second);
    device_read(&host->devices[0], 1, HOST_WINDOW(1) + 64, 256);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_EQ(host->devices[0].reads[0].completions, 1);
    EXPECT_EQ(host->devices[0].reads[0].status, PCIE_CPL_UR);
    EXPECT_EQ(host->devices[0].reads[1].received_bytes, 256);
    host_destroy(host);
}

TEST(PeerPieces, MayBeUnderWayWhenTheHostIsDestroyed)
{
    struct host *host = host_with_pieces(64, 2);
    host->devices[1].answer_bytes = 0;
    device_read(&host->devices[0], 0, HOST_WINDOW(1), 128);
    device_read(&host->devices[2], 0, HOST_WINDOW(1), 512);
    device_read(&host->devices[2], 1, HOST_WINDOW(1), 512);
    (void)sim_run(host->sim);
    host_destroy(host);
}
