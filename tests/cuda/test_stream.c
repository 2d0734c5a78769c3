// Streams, events and kernels: the order of their work.
#include <cuda_runtime.h>
#include <stdlib.h>
#include <tcasim_kernel.h>

#include "tests/support/cuda_fixture.h"

static const struct tcasim_kernel long_kernel = {.duration_ns = 1000000};

// Four words in pinned memory and on the device.
struct setup {
    struct cuda_fixture *fixture;
    uint32_t *host, *device;
    cudaStream_t first, second, free_running;
};

static void setup_init(struct setup *setup)
{
    setup->fixture = cuda_fixture_open();
    EXPECT_EQ(cudaMallocHost((void **)&setup->host, 16), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&setup->device, 16), cudaSuccess);
    EXPECT_EQ(cudaStreamCreate(&setup->first), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&setup->second, cudaStreamDefault), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&setup->free_running, cudaStreamNonBlocking), cudaSuccess);
    setup->host[0] = 7;
}

static cudaError_t send(const struct setup *setup, cudaStream_t stream)
{
    return cudaMemcpyAsync(setup->device, setup->host, 4, cudaMemcpyHostToDevice, stream);
}

static cudaError_t receive(const struct setup *setup, cudaStream_t stream)
{
    return cudaMemcpyAsync(setup->host + 1, setup->device, 4, cudaMemcpyDeviceToHost, stream);
}

TEST(CudaStreams, RunInOrder)
{
    struct setup s;
    setup_init(&s);
    EXPECT_EQ(tcasimLaunchKernel(&long_kernel, s.first), cudaSuccess);
    EXPECT_EQ(send(&s, s.first), cudaSuccess);
    EXPECT_EQ(receive(&s, s.first), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(s.first), cudaErrorNotReady);
    EXPECT_EQ(cudaStreamSynchronize(s.first), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(s.first), cudaSuccess);
    EXPECT_EQ(s.host[1], 7);
    cuda_fixture_close(s.fixture);
}

TEST(CudaStreams, RunSideBySide)
{
    struct setup s;
    setup_init(&s);
    EXPECT_EQ(tcasimLaunchKernel(&long_kernel, s.first), cudaSuccess);
    EXPECT_EQ(send(&s, s.second), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(s.second), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(s.first), cudaErrorNotReady);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(s.first), cudaSuccess);
    cuda_fixture_close(s.fixture);
}

TEST(CudaStreams, OfTheDefaultKindWaitForTheOthersAndTheyForIt)
{
    struct setup s;
    setup_init(&s);
    EXPECT_EQ(tcasimLaunchKernel(&long_kernel, s.first), cudaSuccess);
    EXPECT_EQ(send(&s, NULL), cudaSuccess);
    EXPECT_EQ(receive(&s, s.second), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(s.second), cudaSuccess);
    EXPECT_TRUE(cuda_fixture_work(s.fixture, BACKEND_GPU_KERNEL, 0)->ended);
    EXPECT_EQ(s.host[1], 7);
    cuda_fixture_close(s.fixture);
}

TEST(CudaStreams, ThatDoNotBlockGoTheirOwnWay)
{
    struct setup s;
    setup_init(&s);
    EXPECT_EQ(tcasimLaunchKernel(&long_kernel, s.free_running), cudaSuccess);
    EXPECT_EQ(tcasimLaunchKernel(&long_kernel, cudaStreamLegacy), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(s.free_running), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(NULL), cudaErrorNotReady);
    EXPECT_EQ(send(&s, s.free_running), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(NULL), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(NULL), cudaSuccess);
    cuda_fixture_close(s.fixture);
}

TEST(CudaStreams, AreWaitedForWithTheDefaultOne)
{
    struct setup s;
    setup_init(&s);
    EXPECT_EQ(tcasimLaunchKernel(&long_kernel, s.first), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(NULL), cudaErrorNotReady);
    EXPECT_EQ(cudaStreamSynchronize(NULL), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(s.first), cudaSuccess);
    cuda_fixture_close(s.fixture);
}

TEST(CudaStreams, AreWaitedForByTheDefaultOneEachTimeTheyGotWork)
{
    struct setup s;
    cudaEvent_t event;
    setup_init(&s);
    EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
    for (unsigned round = 0; round < 3; round++) {
        TEST_TRACE("round %u", round);
        EXPECT_EQ(tcasimLaunchKernel(&long_kernel, s.first), cudaSuccess);
        EXPECT_EQ(cudaEventRecord(event, NULL), cudaSuccess);
        EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
        EXPECT_EQ(cudaStreamQuery(s.first), cudaSuccess);
    }
    cuda_fixture_close(s.fixture);
}

TEST(CudaStreams, EndWhatIsInThemWhenDestroyed)
{
    struct setup s;
    cudaStream_t again;
    setup_init(&s);
    EXPECT_EQ(tcasimLaunchKernel(&long_kernel, s.first), cudaSuccess);
    EXPECT_EQ(send(&s, s.first), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(s.first), cudaSuccess);
    EXPECT_FALSE(cuda_fixture_work(s.fixture, BACKEND_GPU_KERNEL, 0)->ended);
    EXPECT_EQ(cudaStreamQuery(s.first), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamCreateWithFlags(&again, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(again), cudaSuccess); // not the queue that still has work
    EXPECT_EQ(receive(&s, NULL), cudaSuccess);      // after the work of the destroyed stream
    EXPECT_EQ(cudaStreamSynchronize(NULL), cudaSuccess);
    EXPECT_EQ(s.host[1], 7);
    cuda_fixture_close(s.fixture);
}

TEST(CudaStreams, UseTheirQueuesAgain)
{
    struct setup s;
    cudaStream_t stream;
    setup_init(&s);
    for (unsigned i = 0; i < 3 * CUDA_FIXTURE_QUEUES; i++) {
        EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess);
        EXPECT_EQ(send(&s, stream), cudaSuccess);
        EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    }
    cuda_fixture_close(s.fixture);
}

TEST(CudaStreams, HaveTheirOwnKindInTheQueueOfAnEarlierOne)
{
    struct setup s;
    cudaStream_t blocking, free_running;
    setup_init(&s);
    EXPECT_EQ(cudaStreamDestroy(s.free_running), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault), cudaSuccess);
    EXPECT_EQ(tcasimLaunchKernel(&long_kernel, blocking), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(NULL), cudaErrorNotReady);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(s.first), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(tcasimLaunchKernel(&long_kernel, free_running), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(NULL), cudaSuccess);
    cuda_fixture_close(s.fixture);
}

TEST(CudaStreams, RefuseWhatTheyDoNotKnow)
{
    struct setup s;
    cudaStream_t stream;
    setup_init(&s);
    EXPECT_EQ(cudaStreamCreate(NULL), cudaErrorInvalidValue);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, 2), cudaErrorInvalidValue);
    EXPECT_EQ(cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamDestroy(cudaStreamPerThread), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamSynchronize((cudaStream_t)s.host), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamDestroy(s.first), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(s.first), cudaErrorInvalidResourceHandle);
    cuda_fixture_close(s.fixture);
}

TEST(CudaStreams, CannotBeMadeWithoutAQueue)
{
    struct setup s;
    cudaStream_t stream = NULL;
    unsigned made = 0;
    setup_init(&s);
    while (cudaStreamCreate(&stream) == cudaSuccess) {
        made++;
    }
    EXPECT_EQ(made, CUDA_FIXTURE_QUEUES - 4); // the default queue and three streams existed
    EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    cuda_fixture_close(s.fixture);
}

// --- events ---------------------------------------------------------------------------------------------------------

TEST(CudaEvents, MeasureWhatIsBetweenThem)
{
    struct setup s;
    cudaEvent_t start, end;
    float ms = 0;
    setup_init(&s);
    EXPECT_EQ(cudaEventCreate(&start), cudaSuccess);
    EXPECT_EQ(cudaEventCreateWithFlags(&end, cudaEventBlockingSync), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(start, s.first), cudaSuccess);
    EXPECT_EQ(tcasimLaunchKernel(&long_kernel, s.first), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(end, s.first), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(end), cudaErrorNotReady);
    EXPECT_EQ(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
    EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(end), cudaSuccess);
    EXPECT_EQ(cudaEventElapsedTime(&ms, start, end), cudaSuccess);
    EXPECT_BETWEEN(ms * 1e6f, 1000000, 1003000); // and the time of the launch
    EXPECT_EQ(cudaEventElapsedTime(&ms, end, start), cudaSuccess);
    EXPECT_BETWEEN(ms * 1e6f, -1003000, -1000000);
    cuda_fixture_close(s.fixture);
}

TEST(CudaEvents, HoldUpAnotherStream)
{
    struct setup s;
    cudaEvent_t event;
    setup_init(&s);
    EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(s.free_running, event, 0), cudaSuccess); // never recorded
    EXPECT_EQ(tcasimLaunchKernel(&long_kernel, s.first), cudaSuccess);
    EXPECT_EQ(send(&s, s.first), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event, s.first), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(s.free_running, event, 0), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    EXPECT_EQ(receive(&s, s.free_running), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(s.free_running), cudaSuccess);
    EXPECT_EQ(s.host[1], 7);
    cuda_fixture_close(s.fixture);
}

TEST(CudaEvents, HoldUpAStreamOfAnotherDevice)
{
    struct setup s;
    cudaEvent_t event;
    cudaStream_t other;
    setup_init(&s);
    EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
    EXPECT_EQ(tcasimLaunchKernel(&long_kernel, s.first), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event, s.first), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaStreamCreate(&other), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    EXPECT_TRUE(cuda_fixture_work(s.fixture, BACKEND_GPU_KERNEL, 0)->ended);
    cuda_fixture_close(s.fixture);
}

TEST(CudaEvents, OutliveTheirStream)
{
    struct setup s;
    cudaEvent_t start, end;
    float ms;
    setup_init(&s);
    EXPECT_EQ(cudaEventCreate(&start), cudaSuccess);
    EXPECT_EQ(cudaEventCreate(&end), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(start, s.first), cudaSuccess);
    EXPECT_EQ(tcasimLaunchKernel(&long_kernel, s.first), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(end, s.first), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(s.first), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
    EXPECT_EQ(cudaEventElapsedTime(&ms, start, end), cudaSuccess);
    cuda_fixture_close(s.fixture);
}

TEST(CudaEvents, RefuseWhatTheyCannotTell)
{
    struct setup s;
    cudaEvent_t event, untimed;
    float ms;
    setup_init(&s);
    EXPECT_EQ(cudaEventCreate(NULL), cudaErrorInvalidValue);
    EXPECT_EQ(cudaEventCreateWithFlags(&event, 8), cudaErrorInvalidValue);
    EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventInterprocess), cudaErrorNotSupported);
    EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
    EXPECT_EQ(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(event), cudaSuccess); // never recorded
    EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
    EXPECT_EQ(cudaEventElapsedTime(&ms, event, event), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventRecord(event, NULL), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(untimed, NULL), cudaSuccess);
    EXPECT_EQ(cudaEventElapsedTime(&ms, event, untimed), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventElapsedTime(&ms, untimed, event), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventElapsedTime(NULL, event, event), cudaErrorInvalidValue);
    EXPECT_EQ(cudaStreamWaitEvent(s.first, event, 1), cudaErrorInvalidValue);
    EXPECT_EQ(cudaStreamWaitEvent(s.first, NULL, 0), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventRecord(event, (cudaStream_t)event), cudaErrorInvalidResourceHandle);
    cuda_fixture_close(s.fixture);
}

TEST(CudaEvents, BelongToADeviceUntilTheyAreDestroyed)
{
    struct setup s;
    cudaEvent_t event;
    setup_init(&s);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event, s.first), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventRecord(event, NULL), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
    cuda_fixture_close(s.fixture);
}

TEST(CudaKernels, AreHandedOnAsDeclared)
{
    struct setup s;
    const struct tcasim_kernel kernel = {.duration_ns = 5, .memory_bytes = 6, .flops = 7};
    setup_init(&s);
    EXPECT_EQ(tcasimLaunchKernel(&kernel, s.first), cudaSuccess);
    const struct cuda_fixture_work *work = cuda_fixture_work(s.fixture, BACKEND_GPU_KERNEL, 0);
    ASSERT_NOT_NULL(work);
    EXPECT_EQ(work->work.duration_ns, 5);
    EXPECT_EQ(work->work.memory_bytes, 6);
    EXPECT_EQ(work->work.flops, 7);
    EXPECT_EQ(tcasimLaunchKernel(NULL, s.first), cudaErrorInvalidValue);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(tcasimLaunchKernel(&kernel, s.first), cudaErrorInvalidResourceHandle);
    cuda_fixture_close(s.fixture);
}

static void nothing(void) // a kernel's name in the program
{
}

// The documented limits of a block: 1024 threads, of which 64 in z.
TEST(CudaKernels, HaveBlocksOfAtMost1024Threads)
{
    static const struct {
        dim3 block;
        cudaError_t error;
    } cases[] = {{{1024, 1, 1}, cudaSuccess},
                 {{32, 32, 1}, cudaSuccess},
                 {{16, 16, 4}, cudaSuccess},
                 {{1, 1, 64}, cudaSuccess},
                 {{1, 1, 65}, cudaErrorInvalidConfiguration},
                 {{1025, 1, 1}, cudaErrorInvalidConfiguration},
                 {{32, 33, 1}, cudaErrorInvalidConfiguration},
                 {{32, 32, 2}, cudaErrorInvalidConfiguration}};
    const struct tcasim_kernel_definition definition = {.name = "nothing"};
    struct setup s;
    setup_init(&s);
    EXPECT_EQ(tcasimKernelRegister((const void *)nothing, &definition), cudaSuccess);
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dim3 block = cases[i].block;
        TEST_TRACE("%u x %u x %u", block.x, block.y, block.z);
        EXPECT_EQ(cudaLaunchKernel((const void *)nothing, (dim3){1, 1, 1}, block, NULL, 0, NULL), cases[i].error);
    }
    cuda_fixture_close(s.fixture);
}

static void takes_5_ns(const struct tcasim_launch *launch, struct tcasim_kernel *cost)
{
    (void)launch;
    cost->duration_ns = 5;
}

static void takes_7_ns(const struct tcasim_launch *launch, struct tcasim_kernel *cost)
{
    (void)launch;
    cost->duration_ns = 7;
}

TEST(CudaKernels, TakeTheirLastDefinition)
{
    static const struct tcasim_kernel_definition first = {.name = "nothing", .cost = takes_5_ns},
                                                 last = {.name = "nothing", .cost = takes_7_ns};
    struct setup s;
    setup_init(&s);
    EXPECT_EQ(tcasimKernelRegister((const void *)nothing, &first), cudaSuccess);
    EXPECT_EQ(tcasimKernelRegister((const void *)nothing, &last), cudaSuccess);
    EXPECT_EQ(cudaLaunchKernel((const void *)nothing, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL), cudaSuccess);
    const struct cuda_fixture_work *work = cuda_fixture_work(s.fixture, BACKEND_GPU_KERNEL, 0);
    ASSERT_NOT_NULL(work);
    EXPECT_EQ(work->work.duration_ns, 7);
    cuda_fixture_close(s.fixture);
}
