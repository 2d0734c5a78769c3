// Rules about FPGAs and fpga-transfer, each with an accepted and a refused case.
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#define PPX  "[{name: a, preset: ppx}]"
#define RUN  "series: s, workload: fpga-transfer, node: a, "
#define READ RUN "method: direct, from: gpu0, to: fpga, "

static void refuse(const char *nodes, const char *run, const char *message)
{
    struct fixture_parts parts = {.nodes = nodes, .cables = "[]", .run = run};
    fixture_expect_refused(&parts, message);
}

static void accept(const char *nodes, const char *run)
{
    struct fixture_parts parts = {.nodes = nodes, .cables = "[]", .run = run};
    fixture_expect_accepted(&parts);
}

TEST(FpgaRules, TransfersNeedAnFpgaAndNoBoard)
{
    accept(PPX, READ "bytes: 4 B");
    refuse("[{name: a, preset: ha-pacs-tca-2013}]", READ "bytes: 4 B",
           "node: an fpga-transfer needs an FPGA, 'a' has none");
    refuse("[{name: a, preset: ppx}, {name: b, preset: ppx}]", READ "peer: b, bytes: 4 B",
           "peer: fpga-transfer stays on one node and takes no peer");
}

TEST(FpgaRules, OneEndOfATransferIsTheFpga)
{
    accept(PPX, RUN "method: direct, from: fpga, to: gpu1, bytes: 4 B");
    accept(PPX, RUN "method: direct, from: fpga, bytes: 4 B");
    refuse(PPX, RUN "method: direct, from: gpu0, bytes: 4 B",
           "from: an fpga-transfer needs fpga as one of from and to, it has none");
    refuse(PPX, RUN "method: direct, from: fpga, to: fpga, bytes: 4 B",
           "from: an fpga-transfer needs fpga as one of from and to, not as both");
    refuse(PPX, RUN "method: direct, from: gpu2, to: fpga, bytes: 4 B", "from: 'a' has 2 GPUs");
}

TEST(FpgaRules, TransfersGoDirectlyOrViaTheCpu)
{
    accept(PPX, RUN "method: via-cpu, from: gpu0, to: fpga, bytes: 4 B");
    refuse(PPX, RUN "method: via-cpu, from: host, to: fpga, bytes: 4 B",
           "from: via-cpu goes between the FPGA and a GPU, not host memory");
    refuse(PPX, RUN "method: register, from: gpu0, to: fpga, bytes: 4 B",
           "method: fpga-transfer needs direct or via-cpu, not register");
    refuse(PPX, READ "bytes: 4 B, descriptors: 2", "descriptors: fpga-transfer moves one at a time");
}

TEST(FpgaRules, SizesFitADescriptorAndTheMemory)
{
    accept(PPX, READ "bytes: 1048572 B");
    refuse(PPX, READ "bytes: 1 MiB", "bytes: 1048576 B are more than the 1048572 B of one descriptor");
    refuse(PPX, READ "bytes: 6 B", "bytes: 6 B is not a multiple of 4 B, as DMA needs");
    const char *small = "[{name: a, preset: ppx, with: {fpga: {memory: 64 KiB}}}]";
    accept(small, READ "bytes: 56 KiB"); // and a guard of 8 KiB
    refuse(small, READ "bytes: 57348 B",
           "bytes: 57348 B and a guard of 8192 B do not fit into the FPGA's memory of 'a'");
}

TEST(FpgaRules, OtherProgramsLeaveTheFpgaAlone)
{
    const char *tca = "[{name: a, preset: ha-pacs-tca-2013, with: {fpga: {preset: arria10-ppx}}}]";
    accept(tca, "series: s, workload: local-dma, method: register, node: a, bytes: 4 B");
    refuse(tca, "series: s, workload: local-dma, method: register, node: a, bytes: 4 B, from: fpga",
           "from: only fpga-transfer reaches the FPGA's memory");
    refuse(tca, "series: s, workload: local-dma, method: via-cpu, node: a, bytes: 4 B",
           "method: via-cpu is of the FPGA; local-dma moves data by a board");
}

TEST(FpgaRules, ASecondSocketNeedsQpi)
{
    accept("[{name: a, preset: ppx, with: {fpga: {socket: 1}}}]", READ "bytes: 4 B");
    refuse("[{name: a, host: {preset: xeon-e5-2660v4, with: {qpi_peer_lines_max: 0}}, gpus: [{preset: p100}], "
           "fpga: {preset: arria10-ppx, with: {socket: 1}}}]",
           READ "bytes: 4 B", "socket: the host of 'a' has one socket; a second one needs qpi_peer_lines_max");
}

TEST(FpgaRules, TheReceiveBufferHoldsAPacket)
{
    accept("[{name: a, preset: ppx, with: {fpga: {posted_data_credits: 16}}}]", READ "bytes: 4 B");
    refuse("[{name: a, preset: ppx, with: {fpga: {posted_data_credits: 15}}}]", READ "bytes: 4 B",
           "posted_data_credits: 15 of 16 B cannot hold one packet of mps 256 B");
}

TEST(FpgaKeys, ComeBackFromTheResolvedText)
{
    struct fixture_parts parts = {.nodes = PPX, .cables = "[]", .run = READ "bytes: 4 B"};
    struct fixture first, second;
    fixture_load_parts(&first, &parts);
    ASSERT_EQ(first.status, SIM_OK);
    char *text = fixture_resolved(first.scenario);
    fixture_load_text(&second, text, NULL);
    ASSERT_EQ(second.status, SIM_OK);
    const struct scn_fpga *fpga = &second.scenario->nodes[0].fpga;
    EXPECT_MEMEQ(fpga, &first.scenario->nodes[0].fpga, sizeof *fpga);
    EXPECT_TRUE(fpga->given);
    EXPECT_EQ(fpga->memory_bytes, 2 << 20);
    EXPECT_EQ(fpga->read_start_cycles, 60);
    EXPECT_EQ(fpga->slot.generation * 100 + fpga->slot.lanes, 308);
    free(text);
    fixture_fini(&first);
    fixture_fini(&second);
}
