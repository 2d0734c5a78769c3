// Pageable memory: pieces, overlap, and when a call returns. Times follow from the rates in box.h.
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "box.h"

#define NS 1000ull

struct stage {
    struct box *box;
    uint8_t *device, *host, *pinned;
    uint64_t start_ps;
};

enum { BYTES = 4 * BOX_STAGING };

static void stage_init(struct stage *stage)
{
    stage->box = box_open();
    stage->host = malloc(BYTES);
    box_fill(stage->host, BYTES, 5);
    EXPECT_EQ(cudaMalloc((void **)&stage->device, BYTES), cudaSuccess);
    EXPECT_EQ(cudaMallocHost((void **)&stage->pinned, BYTES), cudaSuccess);
    stage->start_ps = stage->box->now_ps;
}

static void stage_fini(struct stage *stage)
{
    free(stage->host);
    box_close(stage->box);
}

static uint64_t elapsed_ps(const struct stage *stage)
{
    return stage->box->now_ps - stage->start_ps;
}

TEST(CudaStaging, CutsAtTheBounceBuffer)
{
    struct stage stage;
    stage_init(&stage);
    EXPECT_EQ(cudaMemcpy(stage.device, stage.host, BOX_STAGING, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(box_work_count(stage.box, BACKEND_GPU_TO_DEVICE), 1);
    EXPECT_EQ(cudaMemcpy(stage.device, stage.host, BOX_STAGING + 1, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(box_work_count(stage.box, BACKEND_GPU_TO_DEVICE), 3);
    EXPECT_EQ(box_work(stage.box, BACKEND_GPU_TO_DEVICE, 2)->work.bytes, 1);
    EXPECT_EQ(cudaMemcpy(stage.host, stage.device, 2 * BOX_STAGING, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(box_work_count(stage.box, BACKEND_GPU_TO_HOST), 2);
    EXPECT_EQ(box_work(stage.box, BACKEND_GPU_TO_HOST, 1)->work.bytes, BOX_STAGING);
    EXPECT_MEMEQ(box_device(stage.box, stage.device), stage.host, 2 * BOX_STAGING);
    stage_fini(&stage);
}

TEST(CudaStaging, TakesWholeRowsThatFit)
{
    struct stage stage;
    stage_init(&stage);
    EXPECT_EQ(cudaMemcpy2D(stage.device, 20000, stage.host, 24000, 20000, 7, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(box_work_count(stage.box, BACKEND_GPU_TO_DEVICE), 3);
    EXPECT_EQ(box_work(stage.box, BACKEND_GPU_TO_DEVICE, 0)->work.rows, 3);
    EXPECT_EQ(box_work(stage.box, BACKEND_GPU_TO_DEVICE, 2)->work.rows, 1);
    for (unsigned row = 0; row < 7; row++) {
        EXPECT_MEMEQ(box_device(stage.box, stage.device) + row * 20000, stage.host + row * 24000, 20000);
    }
    stage_fini(&stage);
}

// 64 KB: 6 us of the call and 6.5536 us of the processor; the GPU has not even begun.
TEST(CudaStaging, ReturnsWhenASmallCopyIsStaged)
{
    struct stage stage;
    stage_init(&stage);
    EXPECT_EQ(cudaMemcpy(stage.device, stage.host, 65536, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(elapsed_ps(&stage), 6000 * NS + 65536 * 100);
    EXPECT_FALSE(box_work(stage.box, BACKEND_GPU_TO_DEVICE, 0)->ended);
    memset(stage.host, 0, 65536); // the program's again
    EXPECT_EQ(cudaMemcpy(stage.host, stage.device, 65536, cudaMemcpyDeviceToHost), cudaSuccess);
    box_fill(stage.host + BOX_STAGING, 65536, 5);
    EXPECT_MEMEQ(stage.host, stage.host + BOX_STAGING, 65536);
    stage_fini(&stage);
}

TEST(CudaStaging, ReturnsWhenALargerCopyIsInTheDevice)
{
    struct stage stage;
    stage_init(&stage);
    EXPECT_EQ(cudaMemcpy(stage.device, stage.host, 65537, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_TRUE(box_work(stage.box, BACKEND_GPU_TO_DEVICE, 1)->ended);
    EXPECT_EQ(cudaMemcpyAsync(stage.device, stage.host, 2 * BOX_STAGING, cudaMemcpyHostToDevice, NULL), cudaSuccess);
    EXPECT_FALSE(box_work(stage.box, BACKEND_GPU_TO_DEVICE, 3)->ended);
    stage_fini(&stage);
}

// The GPU's 7.5536 us for a piece hide the processor's 6.5536 us: one of these, four of those.
TEST(CudaStaging, OverlapsTheProcessorWithTheGpu)
{
    struct stage stage;
    stage_init(&stage);
    EXPECT_EQ(cudaMemcpy(stage.device, stage.host, BYTES, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(elapsed_ps(&stage), 6000 * NS + 6553600 + 4 * 7553600);
    stage.start_ps = stage.box->now_ps;
    EXPECT_EQ(cudaMemcpy(stage.host, stage.device, BYTES, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(elapsed_ps(&stage), 6000 * NS + 6553600 + 4 * 7553600);
    EXPECT_EQ(stage.box->copied_bytes, 2 * BYTES);
    stage_fini(&stage);
}

TEST(CudaStaging, SparesPinnedMemory)
{
    struct stage stage;
    stage_init(&stage);
    EXPECT_EQ(cudaMemcpy(stage.device, stage.pinned, BYTES, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(elapsed_ps(&stage), 6000 * NS + 1000 * NS + BYTES * 100);
    EXPECT_EQ(stage.box->copied_bytes, 0);
    stage.start_ps = stage.box->now_ps;
    EXPECT_EQ(cudaMemcpyAsync(stage.device, stage.pinned, BYTES, cudaMemcpyHostToDevice, NULL), cudaSuccess);
    EXPECT_EQ(elapsed_ps(&stage), 2000 * NS);
    stage_fini(&stage);
}

TEST(CudaStaging, OfDeviceToDeviceDoesNotHappenAndDoesNotWait)
{
    struct stage stage;
    stage_init(&stage);
    EXPECT_EQ(cudaMemcpy(stage.device, stage.device + 1000, 1000, cudaMemcpyDeviceToDevice), cudaSuccess);
    EXPECT_EQ(elapsed_ps(&stage), 2000 * NS);
    EXPECT_FALSE(box_work(stage.box, BACKEND_GPU_INSIDE, 0)->ended);
    EXPECT_EQ(cudaMemcpyAsync(stage.host, stage.device, 1000, cudaMemcpyDeviceToHost, NULL), cudaSuccess);
    EXPECT_TRUE(box_work(stage.box, BACKEND_GPU_TO_HOST, 0)->ended); // pageable: when it is there
    stage_fini(&stage);
}

TEST(CudaStaging, OfTheHostWaitsForItsStream)
{
    struct stage stage;
    stage_init(&stage);
    memcpy(box_device(stage.box, stage.device), stage.host, 1000);
    EXPECT_EQ(cudaMemcpyAsync(stage.pinned, stage.device, 1000, cudaMemcpyDeviceToHost, NULL), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(stage.host + 1000, stage.pinned, 1000, cudaMemcpyHostToHost, NULL), cudaSuccess);
    EXPECT_MEMEQ(stage.host + 1000, stage.host, 1000);
    stage_fini(&stage);
}

TEST(CudaStaging, NeedsPinnedMemory)
{
    struct stage stage;
    stage_init(&stage);
    stage.box->no_pinned = true;
    EXPECT_EQ(cudaMemcpy(stage.device, stage.host, 8, cudaMemcpyHostToDevice), cudaErrorMemoryAllocation);
    stage.box->no_pinned = false;
    EXPECT_EQ(cudaMemcpy(stage.device, stage.host, 8, cudaMemcpyHostToDevice), cudaSuccess);
    stage_fini(&stage);
}

TEST(CudaStaging, NeedsADriverThatStages)
{
    struct box *box = box_open();
    void *device;
    int host = 0;
    box->no_staging = true;
    EXPECT_EQ(cudaMalloc(&device, 8), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(device, &host, 4, cudaMemcpyHostToDevice), cudaErrorInitializationError);
    box_close(box);
}

TEST(CudaStaging, TellsOfAPieceThatFailed)
{
    struct stage stage;
    stage_init(&stage);
    stage.box->fail_next = true;
    EXPECT_EQ(cudaMemcpy(stage.host, stage.device, BYTES, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    stage_fini(&stage);
}
