// Workloads with data in GPU memory, and GPU memory that is not mapped: in the simulation, with boards or without.
#include <cuda_runtime.h>
#include <errno.h>

#include "sim/platform/platform.h"
#include "tests/support/platform_fixture.h"
#include "tests/support/site.h"
#include "verbs-shim/libtca/tca.h"

struct outcome {
    struct plat_result result;
    unsigned points;
    struct plat_point last;
};

static void note_point(void *ctx, const struct plat_point *point)
{
    struct outcome *outcome = ctx;
    outcome->points++;
    outcome->last = *point;
}

static struct scn_scenario *pair(void)
{
    struct scn_scenario *scenario = platform_fixture_line(2);
    for (uint32_t i = 0; i < 2; i++) {
        platform_fixture_gpus(scenario, i, 2);
        scenario->nodes[i].board.fidelity = SCN_FIDELITY_TWIN;
        scenario->nodes[i].host.peer_read_bytes = 64;
    }
    return scenario;
}

static struct scn_scenario *no_board(void)
{
    struct scn_scenario *scenario = platform_fixture_line(1);
    scenario->nodes[0].board = (struct scn_board){0};
    platform_fixture_gpus(scenario, 0, 2);
    return scenario;
}

// Measures three sizes, of which the workload checks every byte. Returns the time of an operation of the last size.
static uint64_t moved_ps(struct scn_scenario *scenario, enum scn_workload workload, enum scn_method method,
                         enum scn_memory from, enum scn_memory to)
{
    struct scn_run *run = platform_fixture_run_add(scenario, workload, method);
    struct outcome outcome = {0};
    const struct plat_hooks hooks = {.ctx = &outcome, .point = note_point};
    run->from = from;
    run->to = to;
    platform_fixture_size_add(run, 4, 1);
    platform_fixture_size_add(run, 1000, 1);
    platform_fixture_size_add(run, 70000, 1);
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &outcome.result), SIM_OK);
    EXPECT_STREQ(outcome.result.text, "");
    EXPECT_FALSE(outcome.result.failed);
    EXPECT_EQ(outcome.points, 3);
    platform_fixture_free(scenario);
    return outcome.points == 3 ? outcome.last.total_ps / outcome.last.operations : 0;
}

static const enum scn_memory memories[] = {SCN_MEMORY_HOST, SCN_MEMORY_GPU0, SCN_MEMORY_GPU1};

TEST(GpuWorkloads, PingPongBetweenAllMemoriesOfTwoNodes)
{
    for (unsigned i = 0; i < 9; i++) {
        enum scn_memory from = memories[i / 3], to = memories[i % 3];
        (void)moved_ps(pair(), SCN_WORKLOAD_PINGPONG, SCN_METHOD_REGISTER, from, to);
        (void)moved_ps(pair(), SCN_WORKLOAD_TCA_PINGPONG, SCN_METHOD_CHAIN_BOARD, from, to);
    }
    (void)moved_ps(pair(), SCN_WORKLOAD_PINGPONG, SCN_METHOD_CHAIN_HOST, SCN_MEMORY_GPU0, SCN_MEMORY_GPU1);
    (void)moved_ps(pair(), SCN_WORKLOAD_TCA_PINGPONG, SCN_METHOD_CHAIN_HOST, SCN_MEMORY_GPU1, SCN_MEMORY_GPU0);
}

TEST(GpuWorkloads, PollGpuMemoryThroughItsWindow)
{
    uint64_t memory_ps = moved_ps(pair(), SCN_WORKLOAD_PINGPONG, SCN_METHOD_PIO, SCN_MEMORY_HOST, SCN_MEMORY_HOST);
    uint64_t gpu_ps = moved_ps(pair(), SCN_WORKLOAD_PINGPONG, SCN_METHOD_PIO, SCN_MEMORY_HOST, SCN_MEMORY_GPU1);
    EXPECT_GT(gpu_ps, memory_ps); // a poll crosses the bus
}

TEST(GpuWorkloads, StageCopiesInHostMemoryFasterThanTheBoardReadsAGpu)
{
    struct scn_scenario *scenario = pair();
    scenario->nodes[0].host.peer_reads_max = scenario->nodes[1].host.peer_reads_max = 3;
    uint64_t staged_ps =
        moved_ps(scenario, SCN_WORKLOAD_STAGED_PINGPONG, SCN_METHOD_CHAIN_BOARD, SCN_MEMORY_GPU0, SCN_MEMORY_GPU1);
    scenario = pair();
    scenario->nodes[0].host.peer_reads_max = scenario->nodes[1].host.peer_reads_max = 3;
    uint64_t direct_ps =
        moved_ps(scenario, SCN_WORKLOAD_TCA_PINGPONG, SCN_METHOD_CHAIN_BOARD, SCN_MEMORY_GPU0, SCN_MEMORY_GPU1);
    EXPECT_LT(staged_ps, direct_ps);
    (void)moved_ps(pair(), SCN_WORKLOAD_STAGED_PINGPONG, SCN_METHOD_CHAIN_HOST, SCN_MEMORY_GPU1, SCN_MEMORY_HOST);
}

TEST(GpuWorkloads, CopyBetweenGpusOfANodeWithoutABoard)
{
    uint64_t uva_ps =
        moved_ps(no_board(), SCN_WORKLOAD_CUDA_PINGPONG, SCN_METHOD_UVA, SCN_MEMORY_GPU0, SCN_MEMORY_GPU1);
    uint64_t staged_ps =
        moved_ps(no_board(), SCN_WORKLOAD_CUDA_PINGPONG, SCN_METHOD_NO_UVA, SCN_MEMORY_GPU1, SCN_MEMORY_GPU0);
    // 70000 B once over Gen2 x16, and twice.
    EXPECT_BETWEEN(staged_ps - uva_ps, 9000000, 12000000);
}

TEST(GpuWorkloads, CopyThroughTheWindowOfANodeWithoutABoard)
{
    uint64_t down_ps = moved_ps(no_board(), SCN_WORKLOAD_GDR_COPY, SCN_METHOD_PIO, SCN_MEMORY_HOST, SCN_MEMORY_GPU1);
    uint64_t up_ps = moved_ps(no_board(), SCN_WORKLOAD_GDR_COPY, SCN_METHOD_PIO, SCN_MEMORY_GPU0, SCN_MEMORY_HOST);
    EXPECT_GT(up_ps, 2 * down_ps);
}

// A copy of the given bytes through the window, from or to gpu1, which is on socket 1.
static uint64_t far_ps(bool down, uint64_t bytes, uint64_t load_uc_ps, uint64_t flush_far_ps)
{
    struct scn_scenario *scenario = no_board();
    struct scn_host *host = &scenario->nodes[0].host;
    host->qpi_ps = 50000;
    host->qpi_peer_lines_max = 2;
    host->load_uc_ps = load_uc_ps;
    host->flush_wc_far_ps = flush_far_ps;
    scenario->nodes[0].gpus[1].socket = 1;
    struct scn_run *run = platform_fixture_run_add(scenario, SCN_WORKLOAD_GDR_COPY, SCN_METHOD_PIO);
    struct outcome outcome = {0};
    const struct plat_hooks hooks = {.ctx = &outcome, .point = note_point};
    *(down ? &run->to : &run->from) = SCN_MEMORY_GPU1;
    platform_fixture_size_add(run, bytes, 1);
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &outcome.result), SIM_OK);
    EXPECT_STREQ(outcome.result.text, "");
    platform_fixture_free(scenario);
    return outcome.points == 1 ? outcome.last.min_ps : 0;
}

TEST(GpuWindow, IsReadByTenLoadsAtOnceEachAsLongAsTheProcessorTakes)
{
    uint64_t ten_ps = far_ps(false, 640, 2000000, 0);
    EXPECT_BETWEEN(ten_ps, 2000000, 3000000);
    EXPECT_BETWEEN(far_ps(false, 704, 2000000, 0) - ten_ps, 2000000, 3000000);
    EXPECT_BETWEEN(far_ps(false, 1280, 2000000, 0) - ten_ps, 2000000, 3000000);
}

TEST(GpuWindow, OfTheOtherSocketIsWrittenByTenLinesAtOnce)
{
    // 1000 lines, ten in each 200 ns, or in each 60 ns of flush_wc plus 50 ns of qpi.
    EXPECT_BETWEEN(far_ps(true, 64000, 40000, 200000), 20000000, 20500000);
    EXPECT_BETWEEN(far_ps(true, 64000, 40000, 0), 11000000, 11500000);
}

static void expect_failure(struct scn_scenario *scenario, enum scn_workload workload, enum scn_method method,
                           enum scn_memory from, enum scn_memory to, const char *why)
{
    struct scn_run *run = platform_fixture_run_add(scenario, workload, method);
    struct outcome outcome = {0};
    const struct plat_hooks hooks = {.ctx = &outcome, .point = note_point};
    run->from = from;
    run->to = to;
    platform_fixture_size_add(run, 70000, 1);
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &outcome.result), SIM_OK);
    EXPECT_TRUE(outcome.result.failed);
    EXPECT_CONTAINS(outcome.result.text, why);
    EXPECT_EQ(outcome.points, 0);
    platform_fixture_free(scenario);
}

TEST(GpuWorkloads, FailWithTheErrorThatCudaReturns)
{
    expect_failure(no_board(), SCN_WORKLOAD_CUDA_PINGPONG, SCN_METHOD_UVA, SCN_MEMORY_GPU0, SCN_MEMORY_GPU3,
                   "cudaDeviceEnablePeerAccess: invalid device ordinal");
    expect_failure(no_board(), SCN_WORKLOAD_GDR_COPY, SCN_METHOD_PIO, SCN_MEMORY_HOST, SCN_MEMORY_GPU2,
                   "cudaSetDevice: invalid device ordinal");
    expect_failure(pair(), SCN_WORKLOAD_TCA_PINGPONG, SCN_METHOD_CHAIN_BOARD, SCN_MEMORY_GPU3, SCN_MEMORY_HOST,
                   "cudaSetDevice: invalid device ordinal");
    struct scn_scenario *scenario = pair();
    platform_fixture_gpus(scenario, 1, 3);
    platform_fixture_gpus(scenario, 0, 3);
    expect_failure(scenario, SCN_WORKLOAD_PINGPONG, SCN_METHOD_REGISTER, SCN_MEMORY_HOST, SCN_MEMORY_GPU2,
                   "the window of the fabric does not reach");
    scenario = no_board();
    scenario->nodes[0].gpus[1].bar_bytes = 65536; // one page
    expect_failure(scenario, SCN_WORKLOAD_GDR_COPY, SCN_METHOD_PIO, SCN_MEMORY_HOST, SCN_MEMORY_GPU1,
                   "into the window: Cannot allocate memory");
}

// --- calls of CUDA on a K20 ------------------------------------------------------------------------------------------

static uint64_t now_ps(void)
{
    const struct backend *backend = &backend_current()->backend;
    return backend->ops->time_ps(backend->ctx);
}

static uint64_t copy_ps(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    EXPECT_EQ(cudaMemcpy(to, from, bytes, kind), cudaSuccess); // warm
    uint64_t start_ps = now_ps();
    EXPECT_EQ(cudaMemcpy(to, from, bytes, kind), cudaSuccess);
    return now_ps() - start_ps;
}

static void copies_time(void *arg, peach2_handle_t *board)
{
    (void)arg;
    (void)board;
    void *device, *host;
    size_t bytes = 16 * MIB;
    EXPECT_EQ(cudaMalloc(&device, bytes), cudaSuccess);
    EXPECT_EQ(cudaMallocHost(&host, bytes), cudaSuccess);
    // docs/component-facts.md: 6-7 us on Kepler.
    EXPECT_BETWEEN(copy_ps(device, host, 8, cudaMemcpyHostToDevice), 6000000, 7000000);
    EXPECT_BETWEEN(copy_ps(host, device, 8, cudaMemcpyDeviceToHost), 6000000, 7000000);
    // The bandwidth of Gen2 x16 for writes of 256 B and for completions, in MB/s.
    EXPECT_BETWEEN(bytes * 1000000 / copy_ps(device, host, bytes, cudaMemcpyHostToDevice), 7200, 7420);
    EXPECT_BETWEEN(bytes * 1000000 / copy_ps(host, device, bytes, cudaMemcpyDeviceToHost), 7200, 7320);
    EXPECT_EQ(cudaMemcpy(device, host, bytes + 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
}

TEST(GpuCopies, OfCudaTakeTheirFixedCostAndTheRateOfTheLink)
{
    struct site site = {.scenario = no_board()};
    site_build(&site);
    site_run(&site, copies_time);
    site_fini(&site);
}

// --- copies to another GPU of the node -------------------------------------------------------------------------------

// The second GPU's window has room for one allocation of a megabyte.
static void copies_to_the_other(void *arg, peach2_handle_t *board)
{
    (void)arg;
    (void)board;
    const struct backend *backend = &backend_current()->backend;
    void *from, *to, *other;
    uint64_t device_address, offset, bus_address;
    EXPECT_EQ(cudaMalloc(&from, MIB), cudaSuccess);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&to, MIB), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&other, MIB), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    // Two copies at once share a window onto all of the allocation; no second one has room.
    EXPECT_EQ(cudaMemcpyAsync(to, from, MIB, cudaMemcpyDefault, NULL), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(to, from, MIB, cudaMemcpyDefault, NULL), cudaSuccess);
    EXPECT_NE(cudaMemcpyAsync(other, from, MIB, cudaMemcpyDefault, NULL), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(other, from, MIB, cudaMemcpyDefault), cudaSuccess); // its window replaces the first one
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(backend->ops->gpu->alloc(backend->ctx, 1, MIB, &device_address), 0);
    // The pin replaces the window of `other`.
    EXPECT_EQ(backend->ops->gpu->pin(backend->ctx, 1, device_address, MIB, &offset, &bus_address), 0);
    EXPECT_EQ(backend->ops->gpu->unpin(backend->ctx, 1, offset), 0);
    EXPECT_EQ(cudaMemcpy(to, from, MIB, cudaMemcpyDefault), cudaSuccess);
    EXPECT_EQ(cudaFree(to), cudaSuccess); // although a window onto it is open
    EXPECT_EQ(cudaFree(other), cudaSuccess);
    EXPECT_EQ(cudaFree(from), cudaSuccess);
}

TEST(GpuCopies, ToAnotherGpuKeepItsWindowOpen)
{
    struct site site = {.scenario = no_board()};
    site.scenario->nodes[0].gpus[1].bar_bytes = MIB;
    site_build(&site);
    site_run(&site, copies_to_the_other);
    site_fini(&site);
}

// --- unmapped GPU memory ---------------------------------------------------------------------------------------------

struct attempt {
    struct site site;
    unsigned error; // of the read
};

// Writes to unpinned memory of the other node's GPU, and reads memory of its own GPU that was pinned and freed.
static void reach_for_nothing(void *arg, peach2_handle_t *board)
{
    struct attempt *attempt = arg;
    const struct backend *backend = peach2_backend(board);
    const struct backend_gpu_ops *gpu = backend->ops->gpu;
    struct backend_buffer buffer = site_pinned(board, 4096);
    uint64_t device_address, offset, bus_address;
    EXPECT_EQ(site_dma(board, 0, buffer.bus_address, peach2_gpu_window_address(board, 1, 1, 0), 512), PEACH2_DMA_OK);
    EXPECT_EQ(gpu->alloc(backend->ctx, 0, 65536, &device_address), 0);
    EXPECT_EQ(gpu->pin(backend->ctx, 0, device_address, 65536, &offset, &bus_address), 0);
    EXPECT_EQ(gpu->free(backend->ctx, 0, device_address), -EBUSY);
    EXPECT_EQ(site_dma(board, 0, bus_address, buffer.bus_address, 64), PEACH2_DMA_OK);
    EXPECT_EQ(gpu->unpin(backend->ctx, 0, offset), 0);
    EXPECT_EQ(gpu->free(backend->ctx, 0, device_address), 0);
    attempt->error = site_dma(board, 0, bus_address, buffer.bus_address, 64);
}

TEST(GpuMemory, ThatIsNotPinnedIsAnUnsupportedRequestToABoard)
{
    struct attempt attempt = {.site.scenario = pair()};
    site_build(&attempt.site);
    ASSERT_NOT_NULL(attempt.site.machine);
    plat_machine_set_program(attempt.site.machine, 0, reach_for_nothing, &attempt);
    EXPECT_EQ(plat_machine_run(attempt.site.machine), SIM_RUN_DONE);
    EXPECT_STREQ(peach2_dma_error_name(attempt.error), "read answered Unsupported Request");
    EXPECT_EQ(site_counter(&attempt.site, "node1.gpu1", "unsupported_writes"), 2);
    EXPECT_EQ(site_counter(&attempt.site, "node1.gpu1", "bar_write_bytes"), 0);
    EXPECT_EQ(site_counter(&attempt.site, "node0.gpu0", "unsupported_reads"), 1);
    EXPECT_EQ(site_counter(&attempt.site, "node1.memory", "written_bytes"), 0);
    site_fini(&attempt.site);
}

// --- memory of libtca ------------------------------------------------------------------------------------------------

// The GPU takes 1.7 ms to fill the memory with zeros; the board writes at once.
static void writes_to_new_memory(void *arg, peach2_handle_t *board)
{
    enum { WRITTEN = 64 };
    const size_t bytes = 16 * MIB;
    void *device = NULL, *memory = NULL;
    uint8_t *seen = NULL;
    tcaHandle source, destination;
    (void)arg, (void)board;
    EXPECT_EQ(tcaInit(), tcaSuccess);
    ASSERT_EQ(tcaMalloc(&memory, WRITTEN, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&source, memory, WRITTEN, tcaMemoryCPU), tcaSuccess);
    site_fill(memory, WRITTEN, 5);
    ASSERT_EQ(cudaMallocHost((void **)&seen, 2 * WRITTEN), cudaSuccess);
    ASSERT_EQ(tcaMalloc(&device, bytes, tcaMemoryGPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&destination, device, bytes, tcaMemoryGPU), tcaSuccess);
    tcaDesc *desc = tcaDescNew();
    EXPECT_EQ(tcaDescSetMemcpy(desc, &destination, 0, &source, 0, WRITTEN, tcaDMANotify, 0, 1), tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 0), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(0), tcaSuccess);
    EXPECT_EQ(tcaWaitDMARecvDesc(&destination, 0, 1), tcaSuccess);
    EXPECT_EQ(tcaWaitDMAC(0), tcaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(seen, device, 2 * WRITTEN, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_MEMEQ(seen, memory, WRITTEN);
    EXPECT_TRUE(site_is_value(seen + WRITTEN, WRITTEN, 0));
}

TEST(GpuMemory, OfTcaMallocIsZeroBeforeABoardWritesToIt)
{
    struct site site = {.scenario = pair()};
    site.scenario->nodes[0].gpus[0].memory_bytes_per_us = 10000;
    site_build(&site);
    site_run(&site, writes_to_new_memory);
    site_fini(&site);
}
