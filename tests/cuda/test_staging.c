// Pageable memory: pieces, overlap, and the time at which a call returns. Times follow from the rates in
// cuda_fixture.h.
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cuda_fixture.h"

#define NS 1000ull

struct staging_fixture {
    struct cuda_fixture *base;
    uint8_t *device, *host, *pinned;
    uint64_t start_ps;
};

enum { BYTES = 4 * CUDA_FIXTURE_STAGING };

static void staging_fixture_init(struct staging_fixture *fixture)
{
    fixture->base = cuda_fixture_open();
    fixture->host = malloc(BYTES);
    cuda_fixture_fill(fixture->host, BYTES, 5);
    EXPECT_EQ(cudaMalloc((void **)&fixture->device, BYTES), cudaSuccess);
    EXPECT_EQ(cudaMallocHost((void **)&fixture->pinned, BYTES), cudaSuccess);
    fixture->start_ps = fixture->base->now_ps;
}

static void staging_fixture_fini(struct staging_fixture *fixture)
{
    free(fixture->host);
    cuda_fixture_close(fixture->base);
}

static uint64_t elapsed_ps(const struct staging_fixture *fixture)
{
    return fixture->base->now_ps - fixture->start_ps;
}

TEST(CudaStaging, CutsAtTheBounceBuffer)
{
    struct staging_fixture fixture;
    staging_fixture_init(&fixture);
    EXPECT_EQ(cudaMemcpy(fixture.device, fixture.host, CUDA_FIXTURE_STAGING, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cuda_fixture_work_count(fixture.base, BACKEND_GPU_TO_DEVICE), 1);
    EXPECT_EQ(cudaMemcpy(fixture.device, fixture.host, CUDA_FIXTURE_STAGING + 1, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cuda_fixture_work_count(fixture.base, BACKEND_GPU_TO_DEVICE), 3);
    EXPECT_EQ(cuda_fixture_work(fixture.base, BACKEND_GPU_TO_DEVICE, 2)->work.bytes, 1);
    EXPECT_EQ(cudaMemcpy(fixture.host, fixture.device, 2 * CUDA_FIXTURE_STAGING, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(cuda_fixture_work_count(fixture.base, BACKEND_GPU_TO_HOST), 2);
    EXPECT_EQ(cuda_fixture_work(fixture.base, BACKEND_GPU_TO_HOST, 1)->work.bytes, CUDA_FIXTURE_STAGING);
    EXPECT_MEMEQ(cuda_fixture_device(fixture.base, fixture.device), fixture.host, 2 * CUDA_FIXTURE_STAGING);
    staging_fixture_fini(&fixture);
}

TEST(CudaStaging, TakesWholeRowsThatFit)
{
    struct staging_fixture fixture;
    staging_fixture_init(&fixture);
    EXPECT_EQ(cudaMemcpy2D(fixture.device, 20000, fixture.host, 24000, 20000, 7, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cuda_fixture_work_count(fixture.base, BACKEND_GPU_TO_DEVICE), 3);
    EXPECT_EQ(cuda_fixture_work(fixture.base, BACKEND_GPU_TO_DEVICE, 0)->work.rows, 3);
    EXPECT_EQ(cuda_fixture_work(fixture.base, BACKEND_GPU_TO_DEVICE, 2)->work.rows, 1);
    for (unsigned row = 0; row < 7; row++) {
        EXPECT_MEMEQ(cuda_fixture_device(fixture.base, fixture.device) + row * 20000, fixture.host + row * 24000,
                     20000);
    }
    staging_fixture_fini(&fixture);
}

// 64 KB: 6 us of the call and 6.5536 us of the processor; the GPU has not begun yet.
TEST(CudaStaging, ReturnsWhenASmallCopyIsStaged)
{
    struct staging_fixture fixture;
    staging_fixture_init(&fixture);
    EXPECT_EQ(cudaMemcpy(fixture.device, fixture.host, 65536, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(elapsed_ps(&fixture), 6000 * NS + 65536 * 100);
    EXPECT_FALSE(cuda_fixture_work(fixture.base, BACKEND_GPU_TO_DEVICE, 0)->ended);
    memset(fixture.host, 0, 65536); // the program may use it again
    EXPECT_EQ(cudaMemcpy(fixture.host, fixture.device, 65536, cudaMemcpyDeviceToHost), cudaSuccess);
    cuda_fixture_fill(fixture.host + CUDA_FIXTURE_STAGING, 65536, 5);
    EXPECT_MEMEQ(fixture.host, fixture.host + CUDA_FIXTURE_STAGING, 65536);
    staging_fixture_fini(&fixture);
}

TEST(CudaStaging, ReturnsWhenALargerCopyIsInTheDevice)
{
    struct staging_fixture fixture;
    staging_fixture_init(&fixture);
    EXPECT_EQ(cudaMemcpy(fixture.device, fixture.host, 65537, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_TRUE(cuda_fixture_work(fixture.base, BACKEND_GPU_TO_DEVICE, 1)->ended);
    EXPECT_EQ(cudaMemcpyAsync(fixture.device, fixture.host, 2 * CUDA_FIXTURE_STAGING, cudaMemcpyHostToDevice, NULL),
              cudaSuccess);
    EXPECT_FALSE(cuda_fixture_work(fixture.base, BACKEND_GPU_TO_DEVICE, 3)->ended);
    staging_fixture_fini(&fixture);
}

// The GPU's 7.5536 us for a piece hide the processor's 6.5536 us: one of the latter, four of the former.
TEST(CudaStaging, OverlapsTheProcessorWithTheGpu)
{
    struct staging_fixture fixture;
    staging_fixture_init(&fixture);
    EXPECT_EQ(cudaMemcpy(fixture.device, fixture.host, BYTES, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(elapsed_ps(&fixture), 6000 * NS + 6553600 + 4 * 7553600);
    fixture.start_ps = fixture.base->now_ps;
    EXPECT_EQ(cudaMemcpy(fixture.host, fixture.device, BYTES, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(elapsed_ps(&fixture), 6000 * NS + 6553600 + 4 * 7553600);
    EXPECT_EQ(fixture.base->copied_bytes, 2 * BYTES);
    staging_fixture_fini(&fixture);
}

TEST(CudaStaging, SparesPinnedMemory)
{
    struct staging_fixture fixture;
    staging_fixture_init(&fixture);
    EXPECT_EQ(cudaMemcpy(fixture.device, fixture.pinned, BYTES, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(elapsed_ps(&fixture), 6000 * NS + 1000 * NS + BYTES * 100);
    EXPECT_EQ(fixture.base->copied_bytes, 0);
    fixture.start_ps = fixture.base->now_ps;
    EXPECT_EQ(cudaMemcpyAsync(fixture.device, fixture.pinned, BYTES, cudaMemcpyHostToDevice, NULL), cudaSuccess);
    EXPECT_EQ(elapsed_ps(&fixture), 2000 * NS);
    staging_fixture_fini(&fixture);
}

TEST(CudaStaging, OfDeviceToDeviceDoesNotHappenAndDoesNotWait)
{
    struct staging_fixture fixture;
    staging_fixture_init(&fixture);
    EXPECT_EQ(cudaMemcpy(fixture.device, fixture.device + 1000, 1000, cudaMemcpyDeviceToDevice), cudaSuccess);
    EXPECT_EQ(elapsed_ps(&fixture), 2000 * NS);
    EXPECT_FALSE(cuda_fixture_work(fixture.base, BACKEND_GPU_INSIDE, 0)->ended);
    EXPECT_EQ(cudaMemcpyAsync(fixture.host, fixture.device, 1000, cudaMemcpyDeviceToHost, NULL), cudaSuccess);
    EXPECT_TRUE(cuda_fixture_work(fixture.base, BACKEND_GPU_TO_HOST, 0)->ended); // pageable: it ends at arrival
    staging_fixture_fini(&fixture);
}

TEST(CudaStaging, OfTheHostWaitsForItsStream)
{
    struct staging_fixture fixture;
    staging_fixture_init(&fixture);
    memcpy(cuda_fixture_device(fixture.base, fixture.device), fixture.host, 1000);
    EXPECT_EQ(cudaMemcpyAsync(fixture.pinned, fixture.device, 1000, cudaMemcpyDeviceToHost, NULL), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(fixture.host + 1000, fixture.pinned, 1000, cudaMemcpyHostToHost, NULL), cudaSuccess);
    EXPECT_MEMEQ(fixture.host + 1000, fixture.host, 1000);
    staging_fixture_fini(&fixture);
}

TEST(CudaStaging, NeedsPinnedMemory)
{
    struct staging_fixture fixture;
    staging_fixture_init(&fixture);
    fixture.base->no_pinned = true;
    EXPECT_EQ(cudaMemcpy(fixture.device, fixture.host, 8, cudaMemcpyHostToDevice), cudaErrorMemoryAllocation);
    fixture.base->no_pinned = false;
    EXPECT_EQ(cudaMemcpy(fixture.device, fixture.host, 8, cudaMemcpyHostToDevice), cudaSuccess);
    staging_fixture_fini(&fixture);
}

TEST(CudaStaging, NeedsADriverThatStages)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    void *device;
    int host = 0;
    fixture->no_staging = true;
    EXPECT_EQ(cudaMalloc(&device, 8), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(device, &host, 4, cudaMemcpyHostToDevice), cudaErrorInitializationError);
    cuda_fixture_close(fixture);
}

TEST(CudaStaging, TellsOfAPieceThatFailed)
{
    struct staging_fixture fixture;
    staging_fixture_init(&fixture);
    fixture.base->fail_next = true;
    EXPECT_EQ(cudaMemcpy(fixture.host, fixture.device, BYTES, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    staging_fixture_fini(&fixture);
}

// Both bounce buffers were last used by the newest of many streams. Those of the time after the reset get the memory
// and the numbers of the earlier ones.
TEST(CudaStaging, WaitsForNothingThatWasBeforeAReset)
{
    struct staging_fixture fixture;
    cudaStream_t stream, newest = NULL;
    staging_fixture_init(&fixture);
    while (cudaStreamCreate(&stream) == cudaSuccess) {
        newest = stream;
    }
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_EQ(cudaMemcpyAsync(fixture.device, fixture.host, BYTES, cudaMemcpyHostToDevice, newest), cudaSuccess);
    }
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&fixture.device, BYTES), cudaSuccess);
    while (cudaStreamCreate(&stream) == cudaSuccess) {
    }
    EXPECT_EQ(cudaMemcpy(fixture.device, fixture.host, BYTES, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_MEMEQ(cuda_fixture_device(fixture.base, fixture.device), fixture.host, BYTES);
    staging_fixture_fini(&fixture);
}
