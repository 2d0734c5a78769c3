// GPU memory: which memory can be reached, every byte, and refusals.
#include <cuda_runtime.h>
#include <stdlib.h>

#include "tests/support/tca_fixture.h"

enum { BYTES = 8192 };

// The programs share their device pointers through this; a cluster has one array.
static void *shared_pointer[SITE_NODES_MAX];

static void run_alone(plat_program_fn program)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    cluster_run(&cluster, program, NULL);
    cluster_fini(&cluster);
}

static void run_pair(plat_program_fn first, plat_program_fn other)
{
    struct cluster cluster;
    cluster_init(&cluster, 2);
    cluster_run(&cluster, first, other);
    cluster_fini(&cluster);
}

// Memory of a GPU and its handle, and the handle of the other node.
static void gpu_memory(struct cluster *cluster, peach2_handle_t *board, int device)
{
    uint32_t node = peach2_node(board);
    tca_fixture_install(cluster, board);
    EXPECT_EQ(tcaInit(), tcaSuccess);
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    EXPECT_EQ(tcaMalloc(&shared_pointer[node], 4096, tcaMemoryGPU),
              tcaSuccess); // so that the next allocation is not the first
    EXPECT_EQ(tcaMalloc(&shared_pointer[node], BYTES, tcaMemoryGPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&cluster->handles[node], shared_pointer[node], BYTES, tcaMemoryGPU), tcaSuccess);
    cluster->ready[node] = true;
    for (unsigned i = 0; i < cluster->site.scenario->node_count; i++) {
        cluster_await(board, &cluster->ready[i]);
    }
}

static void gpu_target(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    gpu_memory(cluster, board, 1);
    cluster_await(board, &cluster->flag);
    tca_fixture_remove(cluster, board);
}

static void gpu_end(struct cluster *cluster, peach2_handle_t *board)
{
    cluster->flag = true;
    tca_fixture_remove(cluster, board);
}

static void gpu_to_gpu(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    gpu_memory(cluster, board, 0);
    site_fill(tca_fixture_memory(0, shared_pointer[0]), BYTES, 1);
    EXPECT_EQ(cluster_copy(&cluster->handles[1], 16, &cluster->handles[0], 32, 4000, tcaDMANotifySelf), tcaSuccess);
    EXPECT_EQ(tcaWaitDMARecvDesc(&cluster->handles[0], 0, 1), tcaSuccess); // a handle of GPU memory
    const uint8_t *far = tca_fixture_memory(1, shared_pointer[1]);
    EXPECT_EQ(cluster_copy(&cluster->handles[1], 0, &cluster->handles[0], 0, 16, 0), tcaSuccess);
    while (far[15] != tca_fixture_memory(0, shared_pointer[0])[15]) {
        peach2_backend(board)->ops->cost(peach2_backend(board)->ctx, BACKEND_COST_CALL, 10);
    }
    EXPECT_MEMEQ(far + 16, tca_fixture_memory(0, shared_pointer[0]) + 32, 4000);
    EXPECT_TRUE(site_is_value(far + 4016, BYTES - 4016, 0)); // zeroed and not overwritten
    gpu_end(cluster, board);
}

TEST(TcaGpu, CopiesToTheOtherNodesGpu)
{
    run_pair(gpu_to_gpu, gpu_target);
}

static void new_memory(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    void *memory = NULL;
    tca_fixture_install(cluster, board); // which fills the GPUs with other bytes
    EXPECT_EQ(tcaInit(), tcaSuccess);
    ASSERT_EQ(tcaMalloc(&memory, BYTES, tcaMemoryGPU), tcaSuccess);
    EXPECT_TRUE(site_is_value(tca_fixture_memory(0, memory), BYTES, 0));
    tca_fixture_remove(cluster, board);
}

TEST(TcaGpu, IsZeroWhenTcaMallocReturns)
{
    run_alone(new_memory);
}

static void notified_target(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    gpu_memory(cluster, board, 1);
    EXPECT_EQ(tcaWaitDMARecvDesc(&cluster->handles[0], 0, 1), tcaSuccess);
    EXPECT_TRUE(site_is_filled(tca_fixture_memory(1, shared_pointer[1]), BYTES, 9));
    EXPECT_TRUE(site_is_value(tca_fixture_memory(1, (char *)shared_pointer[1] + BYTES), 64, 0xee));
    tca_fixture_remove(cluster, board);
}

static void cpu_to_gpu(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    void *memory;
    tcaHandle source;
    gpu_memory(cluster, board, 0);
    EXPECT_EQ(tcaMalloc(&memory, BYTES, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&source, memory, BYTES, tcaMemoryCPU), tcaSuccess);
    site_fill(memory, BYTES, 9);
    EXPECT_EQ(cluster_copy(&cluster->handles[1], 0, &source, 0, BYTES, tcaDMANotify), tcaSuccess);
    tca_fixture_remove(cluster, board);
}

TEST(TcaGpu, IsWrittenFromCpuMemoryWithNotification)
{
    run_pair(cpu_to_gpu, notified_target);
}

static void own_gpus(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    void *cpu, *second;
    tcaHandle to_cpu, to_second;
    gpu_memory(cluster, board, 0);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&second, BYTES), cudaSuccess); // allocated by the program
    EXPECT_EQ(tcaMalloc(&cpu, BYTES, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&to_second, second, BYTES, tcaMemoryGPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&to_cpu, cpu, BYTES, tcaMemoryCPU), tcaSuccess);
    site_fill(tca_fixture_memory(0, shared_pointer[0]), BYTES, 4);
    EXPECT_EQ(cluster_copy(&to_second, 0, &cluster->handles[0], 0, BYTES, tcaDMANotify), tcaSuccess);
    EXPECT_EQ(tcaWaitDMARecvDesc(&to_second, 0, 1), tcaSuccess);
    EXPECT_TRUE(site_is_filled(tca_fixture_memory(0, second), BYTES, 4));
    EXPECT_EQ(cluster_copy(&to_cpu, 0, &to_second, 0, BYTES, tcaDMANotify), tcaSuccess);
    EXPECT_EQ(tcaWaitDMARecvDesc(&to_cpu, 0, 1), tcaSuccess);
    EXPECT_TRUE(site_is_filled(cpu, BYTES, 4));
    tca_fixture_remove(cluster, board);
}

TEST(TcaGpu, CopiesBetweenTheGpusAndTheMemoryOfOneNode)
{
    run_alone(own_gpus);
}

static void rows_to_gpu(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    gpu_memory(cluster, board, 0);
    const uint8_t *near = tca_fixture_memory(0, shared_pointer[0]), *far = tca_fixture_memory(1, shared_pointer[1]);
    site_fill(tca_fixture_memory(0, shared_pointer[0]), BYTES, 6);
    tcaDesc *desc = tcaDescNew();
    EXPECT_EQ(tcaDescSetMemcpy2D(desc, &cluster->handles[1], 0, 128, &cluster->handles[0], 0, 256, 64, 16,
                                 tcaDMANotifySelf, 0, 1),
              tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 2), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(2), tcaSuccess);
    EXPECT_EQ(tcaWaitDMAC(2), tcaSuccess);
    while (far[15 * 128 + 63] != near[15 * 256 + 63]) {
        peach2_backend(board)->ops->cost(peach2_backend(board)->ctx, BACKEND_COST_CALL, 10);
    }
    for (unsigned row = 0; row < 16; row++) {
        EXPECT_MEMEQ(far + row * 128, near + row * 256, 64);
        EXPECT_TRUE(site_is_value(far + row * 128 + 64, 64, 0));
    }
    gpu_end(cluster, board);
}

TEST(TcaGpu, TakesRows)
{
    run_pair(rows_to_gpu, gpu_target);
}

static void refusals(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    void *memory = NULL, *host = malloc(64), *device;
    tcaHandle handle;
    gpu_memory(cluster, board, 0);
    EXPECT_EQ(tcaMalloc(NULL, 0, tcaMemoryGPU), tcaErrorArgument);
    EXPECT_EQ(tcaMalloc(NULL, 64, tcaMemoryGPU), tcaErrorArgument);
    EXPECT_EQ(tcaMalloc(&memory, TCA_FIXTURE_GPU_BYTES + 1, tcaMemoryGPU), tcaErrorNoMemory);
    EXPECT_EQ(tcaCreateHandle(&handle, host, 64, tcaMemoryGPU), tcaErrorNotTcaMemory);
    EXPECT_EQ(tcaCreateHandle(&handle, shared_pointer[0], 64, tcaMemoryCPU), tcaErrorNotTcaMemory);
    EXPECT_EQ(tcaCreateHandle(&handle, shared_pointer[0], 64, (tcaMemoryType)2), tcaErrorArgument);
    EXPECT_EQ(tcaCreateHandle(&handle, shared_pointer[0], BYTES + 1, tcaMemoryGPU), tcaErrorRange);
    EXPECT_EQ(tcaCreateHandle(&handle, shared_pointer[0], 0, tcaMemoryGPU), tcaErrorRange);
    EXPECT_EQ(tcaCreateHandle(&handle, (char *)shared_pointer[0] + 2, 8, tcaMemoryGPU), tcaErrorAlignment);
    EXPECT_EQ(cudaMalloc(&device, 100), cudaSuccess);
    EXPECT_EQ(tcaCreateHandle(&handle, device, 101, tcaMemoryGPU), tcaErrorNotTcaMemory);
    EXPECT_EQ(tcaCreateHandle(&handle, device, 100, tcaMemoryGPU), tcaSuccess);
    EXPECT_EQ(tcaFree(device, tcaMemoryGPU), tcaErrorNotTcaMemory);
    EXPECT_CONTAINS(tcaLastMessage(), "cudaFree");
    EXPECT_EQ(tcaFree(shared_pointer[0], tcaMemoryCPU), tcaErrorNotTcaMemory);
    EXPECT_EQ(tcaFree(shared_pointer[0], tcaMemoryGPU), tcaSuccess);
    EXPECT_EQ(tcaFree(shared_pointer[0], tcaMemoryGPU), tcaErrorNotTcaMemory);
    EXPECT_EQ(tca_fixture_allocations(0), 2);
    EXPECT_EQ(tca_fixture_pins(0), 2);
    free(host);
    tca_fixture_remove(cluster, board);
}

TEST(TcaGpu, RefusesWhatIsNoGpuMemory)
{
    run_alone(refusals);
}

static void third_gpu(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    void *memory = NULL, *device;
    tcaHandle handle;
    tca_fixture_install(cluster, board);
    EXPECT_EQ(tcaInit(), tcaSuccess);
    EXPECT_EQ(cudaSetDevice(2), cudaSuccess);
    EXPECT_EQ(tcaMalloc(&memory, BYTES, tcaMemoryGPU), tcaErrorWindow);
    EXPECT_CONTAINS(tcaLastMessage(), "GPU 2");
    EXPECT_EQ(tca_fixture_allocations(0), 0); // no allocation is left
    EXPECT_EQ(cudaMalloc(&device, BYTES), cudaSuccess);
    EXPECT_EQ(tcaCreateHandle(&handle, device, BYTES, tcaMemoryGPU), tcaErrorWindow);
    EXPECT_EQ(tca_fixture_pins(0), 0);
    tca_fixture_remove(cluster, board);
}

static void no_bytes(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    void *memory = &memory;
    tcaHandle empty;
    gpu_memory(cluster, board, 0);
    EXPECT_EQ(tcaMalloc(&memory, 0, tcaMemoryGPU), tcaSuccess);
    EXPECT_NULL(memory);
    EXPECT_EQ(tcaCreateHandle(&empty, memory, 0, tcaMemoryGPU), tcaSuccess);
    EXPECT_EQ(cluster_copy(&empty, 0, &cluster->handles[0], 0, 4, 0), tcaErrorRange);
    EXPECT_EQ(cluster_copy(&cluster->handles[0], 0, &empty, 0, 4, 0), tcaErrorRange);
    EXPECT_EQ(tcaFree(memory, tcaMemoryGPU), tcaSuccess);
    tca_fixture_remove(cluster, board);
}

// A field without a halo on one side has an empty buffer there.
TEST(TcaGpu, OfNoBytesHasAHandleToWhichNothingCanBeCopied)
{
    run_alone(no_bytes);
}

TEST(TcaGpu, IsOneOfTheFirstTwo)
{
    run_alone(third_gpu);
}

static void freed_gpu(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    void *device;
    tcaHandle handle, again;
    gpu_memory(cluster, board, 0);
    EXPECT_EQ(cudaMalloc(&device, BYTES), cudaSuccess);
    EXPECT_EQ(tcaCreateHandle(&handle, device, BYTES, tcaMemoryGPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&again, (char *)device + 64, 64, tcaMemoryGPU), tcaSuccess);
    EXPECT_EQ(again.allocation, handle.allocation); // only one window
    EXPECT_EQ(again.busAddress, handle.busAddress + 64);
    tcaDesc *desc = tcaDescNew();
    EXPECT_EQ(tcaDescSetMemcpy(desc, &cluster->handles[0], 0, &handle, 0, 64, 0, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 0), tcaSuccess);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    EXPECT_EQ(tcaStartDMADesc(0), tcaErrorFreed);
    EXPECT_EQ(tcaWaitDMARecvDesc(&handle, 0, 1), tcaErrorFreed);
    EXPECT_EQ(tcaCreateHandle(&handle, device, BYTES, tcaMemoryGPU), tcaErrorNotTcaMemory);
    EXPECT_EQ(cluster_copy(&cluster->handles[0], 0, &again, 0, 64, 0), tcaErrorFreed);
    tca_fixture_remove(cluster, board);
}

TEST(TcaGpu, IsGoneAfterCudaFree)
{
    run_alone(freed_gpu);
}

// The staged method of hanawa2013: the GPU copies into memory that the board reads.
static void through_host(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    uint8_t *host, *other;
    tcaHandle source, part;
    gpu_memory(cluster, board, 0);
    EXPECT_EQ(cudaMallocHost((void **)&host, BYTES), cudaSuccess);
    EXPECT_EQ(tcaCreateHandle(&source, host, BYTES, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&part, host + 64, 64, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(part.allocation, source.allocation);
    EXPECT_EQ(part.busAddress, source.busAddress + 64);
    site_fill(tca_fixture_memory(0, shared_pointer[0]), BYTES, 9);
    EXPECT_EQ(cudaMemcpy(host, shared_pointer[0], BYTES, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(cluster_copy(&cluster->handles[1], 0, &source, 0, BYTES, tcaDMANotify), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&part, host, BYTES + 4, tcaMemoryCPU), tcaErrorNotTcaMemory);
    EXPECT_EQ(tcaCreateHandle(&part, host, 0, tcaMemoryCPU), tcaErrorRange);
    EXPECT_EQ(tcaFree(host, tcaMemoryCPU), tcaErrorNotTcaMemory);
    EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
    EXPECT_EQ(cluster_copy(&cluster->handles[1], 0, &source, 0, BYTES, 0), tcaErrorFreed);
    EXPECT_EQ(cudaMallocHost((void **)&other, BYTES), cudaSuccess); // even if it gets the same address
    EXPECT_EQ(cluster_copy(&cluster->handles[1], 0, &source, 0, BYTES, 0), tcaErrorFreed);
    tca_fixture_remove(cluster, board);
}

TEST(TcaGpu, TakesPinnedHostMemoryOfCudaAsWell)
{
    run_pair(through_host, notified_target);
}

static void bus_address(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    unsigned long long address = 0;
    void *device;
    int host;
    EXPECT_EQ(tcaCreateHandleGPU(&address, &host, 4), tcaErrorNotSupported); // no GPU yet
    tca_fixture_install(cluster, board);
    EXPECT_EQ(cudaMalloc(&device, BYTES), cudaSuccess); // without tcaInit
    EXPECT_EQ(tcaCreateHandleGPU(&address, (char *)device + 100, 8), tcaSuccess);
    *site_memory(&cluster->site, 0, address) = 0x42;
    EXPECT_EQ(tca_fixture_memory(0, device)[100], 0x42);
    EXPECT_EQ(tcaCreateHandleGPU(NULL, device, 8), tcaErrorArgument);
    EXPECT_EQ(tcaCreateHandleGPU(&address, NULL, 8), tcaErrorArgument);
    EXPECT_EQ(tcaCreateHandleGPU(&address, device, BYTES + 1), tcaErrorNotTcaMemory);
    EXPECT_EQ(tcaCreateHandleGPU(&address, &host, 4), tcaErrorNotTcaMemory);
    tca_fixture_remove(cluster, board);
}

TEST(TcaGpu, TellsItsBusAddress)
{
    run_alone(bus_address);
}

static int alone_allgather(void *ctx, const void *mine, void *all, size_t bytes)
{
    (void)ctx;
    __builtin_memcpy(all, mine, bytes);
    return 0;
}

static void handle_list(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    const struct tcaComm comm = {NULL, 0, 1, alone_allgather};
    tcaHandle *list = NULL;
    gpu_memory(cluster, board, 1);
    EXPECT_EQ(tcaSetComm(&comm), tcaSuccess);
    EXPECT_EQ(tcaCreateHandleList(&list, 1, shared_pointer[0], BYTES), tcaSuccess);
    ASSERT_NOT_NULL(list);
    EXPECT_MEMEQ(&list[0], &cluster->handles[0], sizeof *list);
    EXPECT_EQ(list[0].type, tcaMemoryGPU);
    EXPECT_EQ(list[0].gpu, 1);
    free(list);
    tca_fixture_remove(cluster, board);
}

TEST(TcaGpu, MayBeInAHandleList)
{
    run_alone(handle_list);
}
